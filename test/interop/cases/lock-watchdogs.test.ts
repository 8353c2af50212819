/** The watchdogs of both sides on one server: each renews the holds of its own side, and no others. */
import { expect, test } from "vitest";
import { manyAtOnce, soon, watch } from "../../faults/harness.js";
import { PATIENCE, until } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { type Scene, withRedisson } from "../scene.js";
import { newParty } from "./party.js";
import { DIRECTIONS, type Side } from "./sides.js";
import { expectNothingLeft } from "./waiting.js";

/** A side may stand still for two thirds of this time. */
const TIMEOUT = 4_500;
/** Long enough for a hold without renewal to expire twice. */
const SPAN = 2.2 * TIMEOUT;
/** Both sides renew every third of the time-out; a busy machine may skip some renewals. */
const RENEWALS = 3;

/** The course of a TTL: its lowest value, and how often it rose. */
interface Course {
  lowest: number;
  rises: number;
}

async function course(scene: Scene, name: string): Promise<Course> {
  const seen: Course = { lowest: TIMEOUT, rises: 0 };
  const end = performance.now() + SPAN;
  let last = await scene.redis.pttl(name);
  await until(
    "the span is over",
    async () => {
      const ttl = await scene.redis.pttl(name);
      if (ttl > last) seen.rises++;
      seen.lowest = Math.min(seen.lowest, ttl);
      last = ttl;
      return performance.now() > end;
    },
    { timeout: SPAN + PATIENCE, every: 10 },
  );
  return seen;
}

function expectKept({ lowest, rises }: Course): void {
  expect(lowest).toBeGreaterThan(0);
  expect(rises).toBeGreaterThanOrEqual(RENEWALS);
}

manyAtOnce();

withRedisson("watchdogs", (scene) => {
  const node = () => scene.newNode({ watchdogTimeout: TIMEOUT, pollCap: NEVER });
  const java = async () => scene.thread(await scene.newJava({ watchdog: TIMEOUT }));
  const party = async (side: Side) =>
    newParty(scene, side, {
      ...(side === "Java" && { java: await scene.newJava({ watchdog: TIMEOUT }) }),
      node: { watchdogTimeout: TIMEOUT },
    });

  test.concurrent("side by side on two locks, each keeps its own", async () => {
    const [mine, theirs] = [scene.name(), scene.name()];
    const hold = await node().getLock(mine).lock();
    const lock = (await java()).lock("lock", theirs);
    await lock.lock();
    for (const seen of await Promise.all([course(scene, mine), course(scene, theirs)])) expectKept(seen);
    expect(hold.isHeld).toBe(true);
    expect(await lock.isHeldByCurrentThread()).toBe(true);
    await hold.unlock();
    await lock.unlock();
    await expectNothingLeft(scene, mine);
    await expectNothingLeft(scene, theirs);
  });

  for (const [one, other] of DIRECTIONS) {
    test.concurrent(`${one} keeps what ${other} waits for, and its unlock lets ${other} in`, async () => {
      const name = scene.name();
      const [holder, waiter] = [await party(one), await party(other)];
      await holder.take("lock", name).lock();
      const waiting = waiter.take("lock", name).tryLock(NEVER);
      expectKept(await course(scene, name));
      expect(await scene.redis.hgetall(name)).toEqual({ [holder.owner]: "1" });
      await holder.take("lock", name).unlock();
      expect(await waiting).toBe(true);
      await waiter.take("lock", name).unlock();
      await expectNothingLeft(scene, name);
    });

    test.concurrent(`the watchdog of ${one} leaves alone what ${other} took after it`, async () => {
      const name = scene.name();
      const before = (await party(one)).take("lock", name);
      await before.lock();
      await before.unlock();
      const after = (await party(other)).take("lock", name);
      await after.lock(20_000);
      expect(await course(scene, name)).toMatchObject({ rises: 0 });
      expect(await scene.redis.pttl(name)).toBeGreaterThan(TIMEOUT); // and it was not shortened either
      await after.unlock();
    });
  }

  test.concurrent("a nested unlock in Java leaves a hold that its watchdog keeps", async () => {
    const name = scene.name();
    const lock = (await java()).lock("lock", name);
    await lock.lock();
    await lock.lock();
    await lock.unlock();
    const waiting = watch(node().getLock(name).lock());
    expectKept(await course(scene, name));
    expect(waiting.state).toBe("pending");
    await lock.unlock();
    await (await soon(waiting)).unlock();
  });
});
