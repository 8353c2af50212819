/**
 * Clients of several versions on one lock: the sources, the builds for both module systems, ioredis 5 and 6, node-redis
 * 5 and 6.
 */
import { Redis as Redis5 } from "ioredis5";
import { expect, test } from "vitest";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { type Lock, LockClient } from "../../src/index.js";
import { isBuilt, loadCjs, loadEsm } from "../contract/helpers.js";
import { forFile, nodeRedis, startRedis, UNHURRIED } from "../support/index.js";
import { failOnUnhandledRejections } from "./harness.js";

const ROUNDS = 15;

failOnUnhandledRejections();
const server = await forFile(startRedis());

test("clients of several versions lose no update, and wake each other [F46]", async () => {
  const redis = server.connect();
  const ioredis5 = new Redis5(server.port);
  const others = ([5, 6] as const).map((version) => nodeRedis(version).client({ url: server.url }));
  const copies = isBuilt ? [await loadEsm(), loadCjs()] : [];
  const clients = [
    new LockClient(server.connect(), UNHURRIED),
    new LockClient(ioredis5, UNHURRIED),
    ...others.map((other) => new LockClient(fromNodeRedis(other), UNHURRIED)),
    ...copies.map(
      (copy) => new copy.LockClient(server.connect() as never, UNHURRIED) as unknown as LockClient,
    ),
  ];
  const counter = "counter";
  const add = async (lock: Lock): Promise<void> => {
    for (let i = 0; i < ROUNDS; i++)
      await lock.run(async () => {
        await redis.set(counter, Number((await redis.get(counter)) ?? 0) + 1);
      });
  };
  await Promise.all(clients.map((client) => add(client.getLock("order"))));
  expect(Number(await redis.get(counter))).toBe(clients.length * ROUNDS);
  await Promise.all(clients.map((client) => client.close()));
  ioredis5.disconnect();
  for (const other of others) other.destroy();
});
