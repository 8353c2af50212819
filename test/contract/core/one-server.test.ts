/** The core of the contract on one server, through each client, as the least user, and on the oldest server. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { Redis as Valkey } from "iovalkey";
import { fromNodeRedis } from "../../../src/entries/node-redis.js";
import type { RedisConnection } from "../../../src/index.js";
import { failOnUnhandledRejections } from "../../faults/harness.js";
import { forFile, nodeRedis, startRedis, type TestClient } from "../../support/index.js";
import { CONFINED, confinedUserArgs } from "../../support/least-privilege.js";
import { PLAIN, READ } from "../../support/place/index.js";
import { coreRows, kept } from "./rows.js";

failOnUnhandledRejections();
const server = await forFile(startRedis({ args: confinedUserArgs(true) }));

/** Where `tools/redis-floor.mjs` puts the oldest server that is supported, or the reason why there is none. */
const OLDEST = fileURLToPath(new URL("../../../node_modules/.cache/holdfast-redis-6.2/", import.meta.url));
const hasOldest = existsSync(`${OLDEST}redis-server`);
const oldest = hasOldest
  ? await forFile(startRedis({ binary: `${OLDEST}redis-server`, args: confinedUserArgs(false) }))
  : undefined;

function whyNoOldest(): string | undefined {
  if (hasOldest) return undefined;
  const reason = `${OLDEST}absent.txt`;
  return existsSync(reason)
    ? readFileSync(reason, "utf8")
    : "Redis 6.2 was not fetched; npm run test:all does it";
}

const at = { host: "127.0.0.1", port: server.port };
const byNodeRedis = (version: 5 | 6, options: object = {}): RedisConnection =>
  fromNodeRedis(kept(nodeRedis(version).client({ url: server.url, ...options }) as TestClient));

const kinds = [PLAIN, READ];

coreRows([
  { title: "ioredis 6", connect: () => server.connect(), kinds },
  { title: "ioredis 5", connect: () => kept(new Redis5(at)) as unknown as RedisConnection },
  { title: "iovalkey", connect: () => kept(new Valkey(at)) as unknown as RedisConnection },
  { title: "redis 6", connect: () => byNodeRedis(6) },
  { title: "redis 5", connect: () => byNodeRedis(5) },
  { title: "redis 6 with RESP 2", connect: () => byNodeRedis(6, { RESP: 2 }) },
  { title: "the user with the least rights", connect: () => kept(new Redis({ ...at, ...CONFINED })), kinds },
  {
    title: "Redis 6.2, as the user with the least rights",
    connect: () => kept(new Redis({ ...at, port: oldest?.port ?? 0, ...CONFINED })),
    missing: whyNoOldest(),
    kinds,
  },
]);
