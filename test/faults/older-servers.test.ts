/**
 * Servers before Redis 7 do not know `#!lua`: a client takes the older form when a server refuses such a script.
 * test/contract/core has what works then, and all of it on the oldest server.
 */
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { forFile, forTest, ownConnections, startRedis } from "../support/index.js";

const server = await forFile(startRedis());
await forFile(startRedis({ replicaOf: server }));

type Send = (...words: unknown[]) => Promise<unknown>;

/** A client on a connection whose scripts are sent as `changed` says. */
function clientOf(changed: (lua: string) => string, options?: LockClientOptions): LockClient {
  const redis = server.connect();
  ownConnections(redis, (own: Redis) => {
    const send = own.eval.bind(own) as Send;
    own.eval = ((lua: string, ...rest: unknown[]) => send(changed(lua), ...rest)) as typeof own.eval;
  });
  return forTest(new LockClient(redis, options));
}

/** As Redis 6.2 takes the `#!lua` line: for a syntax error. */
const asOld = (lua: string) => lua.replace(/^#!lua/, " #!lua");

test("a server that refuses #!lua gets the other text at once, and from then on", async () => {
  let refused = 0;
  const client = clientOf((lua) => {
    if (lua.startsWith("#!lua")) refused++;
    return asOld(lua);
  });
  // Not by `run`, which would not report a failed release.
  const holds = await Promise.all(["a", "b", "c"].map((name) => client.getLock(name).lock()));
  await Promise.all(holds.map((hold) => hold.unlock()));
  expect(await server.call("EXISTS", "a", "b", "c")).toBe(0);
  const before = refused;
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThanOrEqual(3); // the calls that were under way at the same time
  const lock = client.getLock("a");
  const hold = await lock.lock();
  expect(await lock.forceUnlock()).toBe(true);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await (await lock.lock()).unlock();
  expect(await lock.isLocked()).toBe(false);
  expect(refused).toBe(before);
});

test("on a server that refuses #!lua a grant with a WAIT goes through as well", async () => {
  const hold = await clientOf(asOld, { replicas: 1 }).getLock("waited").lock();
  await hold.unlock();
  expect(await server.call("EXISTS", "waited")).toBe(0);
});

test.each([
  ["refused in both texts", "#", true],
  ["wrong in another way", "retrun 1", false],
])("a script that is %s is not sent without end", async (_, broken, tried) => {
  const texts: string[] = [];
  const breaking = (lua: string) => {
    if (!lua.includes("tombstoneTtl")) return lua;
    texts.push(lua);
    return broken;
  };
  const client = clientOf(breaking, { commandTimeout: 2_000 });
  const hold = await client.getLock(`broken ${tried}`).lock();
  await expect(hold.unlock()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  expect(texts[0]).toMatch(/^#!lua/);
  expect(texts.some((lua) => !lua.startsWith("#!lua"))).toBe(tried);
  expect(texts.length).toBeLessThan(20);
});
