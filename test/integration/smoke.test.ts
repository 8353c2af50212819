import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { spawn, type ChildProcess } from "node:child_process";
import { LockClient } from "../../src/index.js";
let p: ChildProcess; let redis: Redis; let client: LockClient;
beforeAll(async () => {
  p = spawn("redis-server", ["--port", "17011", "--save", "", "--appendonly", "no"], { stdio: "ignore" });
  redis = new Redis(17011); redis.on("error", () => {});
  client = new LockClient(redis);
  await client.ready();
});
afterAll(async () => { await client.close(); redis.disconnect(); p.kill(); });
it("takes and gives back", async () => {
  const lock = client.getLock("a");
  const hold = await lock.lock();
  expect(hold.isHeld).toBe(true);
  expect(await redis.hgetall("a")).toEqual({ [hold.ownerId]: "1" });
  expect(await lock.tryLock()).toBeNull();
  await hold.unlock();
  expect(await redis.exists("a")).toBe(0);
});
it("waits", async () => {
  const lock = client.getLock("a");
  const hold = await lock.lock();
  const t = performance.now();
  const second = lock.lock();
  setTimeout(() => hold.unlock(), 100);
  await (await second).unlock();
  expect(performance.now() - t).toBeLessThan(500);
  expect(await lock.tryLock(0)).not.toBeNull();
});
it("scope, nested and run", async () => {
  const lock = client.getLock("b");
  await client.scope(async () => {
    if (await lock.tryLock(500, 10_000)) {
      try { await lock.lock(); expect(await lock.getHoldCount()).toBe(2); await lock.unlock(); expect(await lock.getHoldCount()).toBe(1); } finally { await lock.unlock(); }
    }
  });
  expect(await lock.isLocked()).toBe(false);
  const order: string[] = [];
  await lock.run(async () => {
    await Promise.all([1, 2, 3].map((i) => lock.run(async () => { order.push(`+${i}`); await new Promise((r) => setTimeout(r, 5)); order.push(`-${i}`); })));
  });
  expect(order).toEqual(["+1", "-1", "+2", "-2", "+3", "-3"]);
  expect(await lock.isLocked()).toBe(false);
});
it("100 waiters", async () => {
  const lock = client.getLock("c");
  let n = 0;
  await Promise.all(Array.from({ length: 100 }, () => lock.run(async () => { const v = n; await null; n = v + 1; })));
  expect(n).toBe(100);
});
