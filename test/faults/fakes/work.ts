/**
 * All work of a client that takes time, followed by events only, because a test with fake timers cannot wait otherwise.
 */
import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { LockClient } from "../../../src/index.js";

/** Both clients are on one server, each with the connection that the user gave it. */
export async function workAll(
  [client, redis]: [LockClient, Redis],
  [rival, other]: [LockClient, Redis],
): Promise<void> {
  const names = ["a", "b", "c", "d"];
  const [holds, pong] = await Promise.all([
    Promise.all(names.map((name) => client.getLock(name).lock())),
    redis.ping(),
  ]);
  expect(pong).toBe("PONG");
  // A wait that ends by its time-out.
  expect(await rival.getLock("a").tryLock(500)).toBeNull();
  // Two waits that end by a message; the second one's channel is already confirmed.
  for (const name of ["a", "b"]) {
    const waiting = new Promise((resolve) => rival.once("waiting", resolve));
    const next = rival.getFairLock(name).lock();
    await waiting;
    await holds.shift()?.unlock();
    await (await next).unlock();
  }
  // The watchdog.
  await new Promise((resolve) => client.once("renewed", resolve));
  for (const hold of holds) {
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  }
  const semaphore = client.getSemaphore("s");
  await semaphore.trySetPermits(1);
  await semaphore.acquire();
  const permit = rival.getSemaphore("s").acquire();
  await semaphore.release();
  await permit;
  // A command without an answer has a time limit, too.
  await other.client("PAUSE", 60_000, "WRITE");
  await expect(client.getLock("late").tryLock(100)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  await other.client("UNPAUSE");
  expect(await redis.ping()).toBe("PONG");
}
