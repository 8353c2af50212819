/**
 * One instance of the shop of nest-app.mjs, which sells from a stock: each sale reads the count and then writes it.
 * SIGTERM ends it by Nest's own shutdown hooks.
 */
import * as nestjs from "holdfast/nestjs";
import { Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";
import { startShop } from "./nest-app.mjs";

const redis = new Redis(Number(process.argv[2]));

async function sell() {
  const left = Number(await redis.get("left"));
  if (left > 0) await redis.set("left", left - 1);
  return { sold: left > 0 };
}

const { app, port } = await startShop(nestjs, nestjs.LockModule.forRoot({ redis }), sell);
process.once("SIGTERM", async () => {
  await app.close();
  redis.disconnect();
  process.disconnect();
});
serve({ port: () => port });
