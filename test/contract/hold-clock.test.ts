/** Contract section 2: the local deadline is the end, by a clock that the test moves. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { type Lock, LockClient, type LockClientOptions, LockLostError } from "../../src/index.js";
import { type RedisServer, startRedis, untilGone } from "../support/index.js";
import { failure, ManualClock, recordEvents, warmUp } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  lock = client.getLock("a");
  await warmUp(lock);
});
afterAll(async () => {
  await client?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => redis.flushall());

const LOST = { code: "LOCK_LOST", lockName: "a" };

describe("the clock", () => {
  async function onClock(options: LockClientOptions = {}) {
    const clock = new ManualClock();
    const timed = new LockClient(redis, { ...options, [INTERNALS]: { clock } } as LockClientOptions);
    const mine = timed.getLock("a");
    await warmUp(mine);
    return { clock, timed, mine };
  }

  test("isHeld is false from the local deadline on, even before the signal could fire", async () => {
    const { clock, timed, mine } = await onClock();
    const hold = await mine.lock({ lease: 10_000 });
    expect(hold.remaining).toBe(10_000 * 0.99 - 2);
    clock.stand(9_897);
    expect(hold.isHeld).toBe(true);
    expect(hold.remaining).toBeCloseTo(1);
    hold.assertHeld();
    clock.stand(1); // no timer has fired
    expect(hold.isHeld).toBe(false);
    expect(hold.remaining).toBe(0);
    expect(() => hold.assertHeld()).toThrow(LockLostError);
    await timed.close({ timeout: 0 });
  });

  test("what is left on the server of a hold whose deadline passed here is released", async () => {
    const { clock, timed, mine } = await onClock();
    const hold = await mine.lock({ lease: 60_000 });
    clock.advance(60_000);
    expect(hold.signal.aborted).toBe(true);
    expect(hold.signal.reason).toMatchObject({ ...LOST, reason: "expired" });
    await untilGone(redis, "a");
    expect(await failure(hold.unlock())).toMatchObject({ ...LOST, reason: "expired" });
    await timed.close({ timeout: 0 });
  });

  test("a stalled event loop does not renew what is lost already", async () => {
    const { clock, timed, mine } = await onClock({ watchdogTimeout: 30_000 });
    const events = recordEvents(timed);
    const hold = await mine.lock();
    clock.stand(31_000);
    clock.fire();
    expect(hold.signal.aborted).toBe(true);
    await untilGone(redis, "a");
    expect(events.map(({ name }) => name)).toEqual(["acquired", "lost"]);
    expect(await failure(hold.unlock())).toMatchObject(LOST);
    await timed.close({ timeout: 0 });
  });

  test("unlock, lock.unlock() and run agree when the timer did not fire", async () => {
    const { clock, timed, mine } = await onClock();
    const bare = await mine.lock({ lease: 10_000 });
    clock.stand(10_000);
    expect(await failure(bare.unlock())).toMatchObject({ ...LOST, reason: "expired" });
    await untilGone(redis, "a");
    await timed.scope(async () => {
      await mine.lock({ lease: 10_000 });
      clock.stand(10_000);
      expect(await failure(mine.unlock())).toMatchObject(LOST);
    });
    await untilGone(redis, "a");
    const run = mine.run(
      () => {
        clock.stand(10_000);
        return "done";
      },
      { lease: 10_000 },
    );
    expect(await failure(run)).toMatchObject({ ...LOST, result: "done" });
    await untilGone(redis, "a");
    await timed.close({ timeout: 0 });
  });

  test("is pessimistic: a suspend that only the wall clock saw ends the hold", async () => {
    const { clock, timed, mine } = await onClock();
    const hold = await mine.lock({ lease: 60_000 });
    clock.step(30_000);
    expect(hold.remaining).toBe(60_000 * 0.99 - 2 - 30_000);
    clock.step(30_000);
    expect(hold.isHeld).toBe(false);
    expect(await failure(hold.unlock())).toMatchObject(LOST);
    await untilGone(redis, "a");
    await timed.close({ timeout: 0 });
  });

  test("a step back of the wall clock lengthens nothing", async () => {
    const { clock, timed, mine } = await onClock();
    const hold = await mine.lock({ lease: 60_000 });
    clock.step(-3_600_000);
    expect(hold.remaining).toBe(60_000 * 0.99 - 2);
    clock.stand(30_000);
    expect(hold.remaining).toBe(60_000 * 0.99 - 2 - 30_000);
    await hold.unlock();
    await timed.close({ timeout: 0 });
  });
});
