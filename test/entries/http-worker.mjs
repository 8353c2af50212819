/**
 * One instance of a service that sells from a stock, on the framework in its argument: each sale reads the count and
 * then writes it. SIGTERM ends it as a service should end: no new requests, then the present work, then the client.
 */
import { LockClient } from "holdfast";
import * as http from "holdfast/http";
import { Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";
import { APPS } from "./http-apps.mjs";

const [framework, redisPort] = process.argv.slice(2);
const redis = new Redis(Number(redisPort));
const client = new LockClient(redis);
const stock = client.getLock("stock");

async function sell() {
  await stock.lock();
  try {
    const left = Number(await redis.get("left"));
    await stock.lock();
    await stock.unlock();
    if (left > 0) await redis.set("left", left - 1);
    return { sold: left > 0 };
  } finally {
    await stock.unlock();
  }
}

const app = await APPS[framework](http, client, sell);
process.once("SIGTERM", async () => {
  await app.close();
  await client.close();
  redis.disconnect();
  process.disconnect();
});
serve({ port: () => app.port });
