/**
 * One lock for both sides, plain or fair: which calls are refused, what each side sees of the other, and who is next.
 */
import { expect, test } from "vitest";
import { failOnUnhandledRejections, soon, type Watched } from "../../faults/harness.js";
import { SLACK } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import {
  failure,
  keysLeft,
  NODE_WAITER,
  newParty,
  type Party,
  parked as parkedParty,
  saysLost,
} from "./party.js";
import { DIRECTIONS, type Side } from "./sides.js";
import { expectNothingLeft, parked } from "./waiting.js";

failOnUnhandledRejections();

/** A lease whose end a test waits for. */
const LEASE = 4_000;
/** By how much a lease may have run down when it is looked at. */
const GONE = 5_000;
const ROUNDS = 20;
const STRANGER = "java.lang.IllegalMonitorStateException";

withRedisson("lock", (scene) => {
  for (const kind of ["lock", "fair"] as const) {
    for (const [one, other] of DIRECTIONS) {
      /** A lock that `one` holds with this lease, and a call of `other` that waits for it. */
      const contended = async (lease: number): Promise<[Party, Party, Watched<unknown>, string]> => {
        const name = scene.name();
        const [holder, waiter] = [await newParty(scene, one), await newParty(scene, other)];
        await holder.take(kind, name).lock(lease);
        return [
          holder,
          waiter,
          await parkedParty(scene, waiter, () => waiter.take(kind, name).lock(NEVER)),
          name,
        ];
      };

      test(`${kind}: what ${one} holds, as ${other} sees it`, async () => {
        const name = scene.name();
        const holder = await newParty(scene, one);
        const mine = holder.take(kind, name);
        const theirs = (await newParty(scene, other)).take(kind, name);
        expect([await theirs.isLocked(), await theirs.remainTimeToLive()]).toEqual([false, -2]);
        await mine.lock(NEVER);
        expect(await theirs.isLocked()).toBe(true);
        expect(await theirs.remainTimeToLive()).toBeGreaterThan(NEVER - GONE);
        expect(await theirs.remainTimeToLive()).toBeLessThanOrEqual(NEVER);
        expect(await theirs.getHoldCount()).toBe(0);
        expect(await theirs.tryLock()).toBe(false);
        expect(await scene.redis.hgetall(name)).toEqual({ [holder.owner]: "1" });
        expect(await keysLeft(scene, name)).toEqual([name]);
        await mine.unlock();
        expect([await theirs.isLocked(), await theirs.remainTimeToLive()]).toEqual([false, -2]);
        expect(await theirs.tryLock()).toBe(true);
        await theirs.unlock();
      });

      test(`${kind}: ${one} re-enters while ${other} waits, which is next after as many unlocks`, async () => {
        const [holder, waiter, call, name] = await contended(NEVER);
        const mine = holder.take(kind, name);
        await mine.lock(NEVER);
        expect(await mine.tryLock()).toBe(true);
        expect(await scene.redis.hgetall(name)).toEqual({ [holder.owner]: "3" });
        for (const left of [2, 1]) {
          await mine.unlock();
          expect(await scene.redis.hget(name, holder.owner)).toBe(String(left));
          expect(await mine.getHoldCount()).toBe(left);
          expect(call.state).toBe("pending");
        }
        await mine.unlock();
        await soon(call);
        await waiter.take(kind, name).unlock();
        expect(await keysLeft(scene, name)).toEqual([]);
      });

      test(`${kind}: the lease of ${one} ends: ${other}, which waits, is let in then, and ${one} is told`, async () => {
        const begun = performance.now();
        const [holder, waiter, call, name] = await contended(LEASE);
        await soon(call);
        expect(performance.now() - begun).toBeGreaterThan(LEASE - 50);
        expect(call.took).toBeLessThan(LEASE + SLACK);
        expect(await failure(holder.take(kind, name).unlock())).toSatisfy(saysLost);
        expect(await waiter.take(kind, name).getHoldCount()).toBe(1);
        await waiter.take(kind, name).unlock();
      });
    }

    test(`${kind}: it is handed over by message, both ways`, async () => {
      const name = scene.name();
      const thread = await scene.thread();
      const java = thread.lock(kind, name);
      const client = scene.newNode({ pollCap: NEVER });
      const node = kind === "fair" ? client.getFairLock(name) : client.getLock(name);
      const taken: Record<Side, number[]> = { Java: [], Node: [] };
      let hold = await node.lock({ lease: NEVER });
      for (let i = 0; i < ROUNDS; i++) {
        const inJava = await parkedParty(scene, thread, () => java.timed<null>("lock", { lease: NEVER }));
        let given = process.hrtime.bigint();
        await hold.unlock();
        taken.Java.push(Number((await soon(inJava)).at - given) / 1e6);
        const inNode = await parkedParty(scene, NODE_WAITER, async () => {
          hold = await node.lock({ lease: NEVER });
          return process.hrtime.bigint();
        });
        given = process.hrtime.bigint();
        await java.unlock();
        taken.Node.push(Number((await soon(inNode)) - given) / 1e6);
      }
      await hold.unlock();
      for (const [side, times] of Object.entries(taken)) {
        times.sort((a, b) => a - b);
        const at = (share: number) => (times[Math.ceil(share * ROUNDS) - 1] ?? Number.NaN).toFixed(1);
        console.log(
          `${kind}, ${scene.version}: handed over to ${side} in p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
        );
        expect(Number(at(0.99))).toBeLessThan(5_000);
      }
      expect(await keysLeft(scene, name)).toEqual([]);
    });
  }

  test("Java re-enters: inspect in Node sees the count go 1, 2, 1", async () => {
    const name = scene.name();
    const thread = await scene.thread();
    const java = thread.lock("lock", name);
    const seen = async () => {
      const info = await scene.node.inspect(name);
      expect(info).toMatchObject({ name, kind: "lock", holders: [{ ownerId: thread.owner }] });
      return info?.holders[0]?.count;
    };
    await java.lock();
    expect(await seen()).toBe(1);
    expect(await java.tryLock()).toBe(true);
    expect(await seen()).toBe(2);
    await java.unlock();
    expect(await seen()).toBe(1);
    await java.unlock();
    expect(await scene.node.inspect(name)).toBeNull();
  });

  test("a hold without a lease has the watchdog's TTL for the other side", async () => {
    const [mine, theirs] = [scene.name(), scene.name()];
    const hold = await scene.node.getLock(mine).lock();
    const thread = await scene.thread();
    await thread.lock("lock", theirs).lock();
    for (const ttl of [
      await thread.lock("lock", mine).remainTimeToLive(),
      await scene.node.getLock(theirs).remainTimeToLive(),
    ]) {
      expect(ttl).toBeGreaterThan(30_000 - GONE);
      expect(ttl).toBeLessThanOrEqual(30_000);
    }
    await hold.unlock();
    await thread.lock("lock", theirs).unlock();
  });

  test("Redisson refuses to unlock what Node holds, and the hold stands", async () => {
    const name = scene.name();
    const hold = await scene.node.getLock(name).lock();
    const java = (await scene.thread()).lock("lock", name);
    await expect(java.unlock()).rejects.toMatchObject({ javaClass: STRANGER });
    expect(await scene.redis.hgetall(name)).toEqual({ [hold.ownerId]: "1" });
    await hold.unlock();
    await expect(java.unlock()).rejects.toMatchObject({ javaClass: STRANGER });
  });

  test("Node refuses to unlock what Java holds, and the hold stands", async () => {
    const name = scene.name();
    const thread = await scene.thread();
    const java = thread.lock("lock", name);
    await java.lock();
    const lock = scene.node.getLock(name);
    await scene.node.scope(async () => {
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      await expect(lock.unlock()).rejects.toMatchObject({ code: "NOT_OWNER" });
    });
    expect(await scene.redis.hgetall(name)).toEqual({ [thread.owner]: "1" });
    expect(await java.isHeldByCurrentThread()).toBe(true);
    await java.unlock();
  });

  test("each side's tryLock gives up after its wait, and leaves nothing", async () => {
    const wait = 4_000; // a Redisson call whose wait ends while it subscribes may stay subscribed
    const name = scene.name();
    const java = (await scene.thread()).lock("lock", name);
    const lock = scene.node.getLock(name);
    const hold = await lock.lock();
    let begun = performance.now();
    const inJava = await parked(scene, name, () => java.tryLock(wait));
    expect(await inJava.promise).toBe(false);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(wait - 1);
    await hold.unlock();
    await expectNothingLeft(scene, name);
    await java.lock();
    begun = performance.now();
    expect(await lock.tryLock(wait)).toBeNull();
    expect(performance.now() - begun).toBeGreaterThanOrEqual(wait - 1);
    await expect(lock.lock({ wait: 2_500 })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
    await java.unlock();
    await expectNothingLeft(scene, name);
  });
});
