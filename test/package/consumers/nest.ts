/** The shop of the tests of `holdfast/nestjs`, on both versions of Nest: one lock by decorator, and one that is in use. */
import { readFileSync } from "node:fs";
import manifest from "../../../package.json" with { type: "json" };
import type { Row } from "./table.js";

const SHOP = readFileSync(new URL("../../entries/nest-app.mjs", import.meta.url), "utf8");

const SELL = `import { LockClient } from "holdfast";
import * as nestjs from "holdfast/nestjs";
import { startShop } from "./nest-app.mjs";
const redis = process.env.REDIS_URL;
const sell = async (client) => ({ held: await client.getLock("stock").isLocked() });
const { app, port } = await startShop(nestjs, nestjs.LockModule.forRoot({ redis }), sell);
const post = (path) => fetch("http://127.0.0.1:" + port + path, { method: "POST" });
console.log(await (await post("/")).text());
const rival = LockClient.connect(redis);
const hold = await rival.getLock("stock").lock();
console.log((await post("/try")).status);
await hold.unlock();
await rival.close();
await app.close();
`;

const { "reflect-metadata": metadata, rxjs, ioredis, "@nestjs/core": newest } = manifest.devDependencies;

export const NEST: readonly Row[] = ["10.4.22", newest].map((version) => ({
  name: `Nest ${version}: a route under a lock`,
  packages: {
    ioredis,
    "@nestjs/common": version,
    "@nestjs/core": version,
    "@nestjs/platform-express": version,
    "reflect-metadata": metadata,
    rxjs,
  },
  files: { "nest-app.mjs": SHOP, "sell.mjs": SELL },
  commands: [["node", "sell.mjs"]],
  prints: '{"held":true}\n409\n',
}));
