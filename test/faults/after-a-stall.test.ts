/** After a stall the event loop reads the answers that have arrived before timers fire; what has ended stays ended. */
import { expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { forFile, forTest, ownConnections, type RedisServer, startRedis, until } from "../support/index.js";

const servers = await Promise.all(Array.from({ length: 3 }, () => forFile(startRedis())));

const never = new Int32Array(new SharedArrayBuffer(4));

function standStill(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}

/** Blocks the event loop until `enough`, and a little longer. */
function stall(enough: () => boolean): void {
  while (!enough()) standStill(10);
  standStill(30);
}

test("a hold whose deadline has passed stays lost, whatever answer to a renewal is read then [B2]", async () => {
  const server = servers[0] as RedisServer;
  const redis = server.connect();
  const own = ownConnections(redis);
  const client = forTest(new LockClient(redis, { watchdogTimeout: 4_500 }));
  // Read anew each time, because ioredis makes a new queue when it connects.
  const unanswered = () => (own[0] as unknown as { commandQueue: { length: number } }).commandQueue.length;
  const hold = await client.getLock("revived").lock();
  server.pause();
  await until("a renewal is on its way", () => unanswered() > 0);
  // The answer to the renewal arrives while the event loop is blocked.
  server.resume();
  stall(() => !hold.isHeld);
  expect(hold.isHeld).toBe(false);
  await until("its signal says so", () => hold.signal.aborted);
  expect(hold.isHeld).toBe(false);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});
