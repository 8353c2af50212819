/** One lock, two sides: who is kept out, and what each side sees of the other. */
import { expect, test } from "vitest";
import { isLockError } from "../../../src/index.js";
import { soon } from "../../faults/harness.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import { expectNothingLeft, parked } from "./waiting.js";

const LEASE = 10_000;
/** One whose end a test waits for. */
const SHORT = 4_000;
/** What may have gone of a lease until it is looked at. */
const GONE = 5_000;
const STRANGER = "java.lang.IllegalMonitorStateException";

withRedisson("lock", (scene) => {
  test("Node holds: Java is refused and sees the owner, the count and the TTL", async () => {
    const name = scene.name();
    const hold = await scene.node.getLock(name).lock({ lease: LEASE });
    const lock = (await scene.thread()).lock("lock", name);
    expect(await lock.tryLock()).toBe(false);
    expect(await lock.isLocked()).toBe(true);
    expect(await lock.isHeldByCurrentThread()).toBe(false);
    expect(await lock.getHoldCount()).toBe(0);
    expect(await scene.redis.hgetall(name)).toEqual({ [hold.ownerId]: "1" });
    const ttl = await lock.remainTimeToLive();
    expect(ttl).toBeGreaterThan(LEASE - GONE);
    expect(ttl).toBeLessThanOrEqual(LEASE);
    await hold.unlock();
    expect(await lock.isLocked()).toBe(false);
    expect(await lock.remainTimeToLive()).toBe(-2);
    expect(await lock.tryLock()).toBe(true);
    await lock.unlock();
  });

  test("Java holds: Node is refused and sees the owner, the count and the TTL", async () => {
    const name = scene.name();
    const thread = await scene.thread();
    await thread.lock("lock", name).lock(LEASE);
    const lock = scene.node.getLock(name);
    expect(await lock.tryLock()).toBeNull();
    expect(await lock.isLocked()).toBe(true);
    const info = await scene.node.inspect(name);
    expect(info).toMatchObject({ name, kind: "lock", holders: [{ ownerId: thread.owner, count: 1 }] });
    for (const ttl of [await lock.remainTimeToLive(), info?.ttl]) {
      expect(ttl).toBeGreaterThan(LEASE - GONE);
      expect(ttl).toBeLessThanOrEqual(LEASE);
    }
    await thread.lock("lock", name).unlock();
    expect(await lock.isLocked()).toBe(false);
    expect(await scene.node.inspect(name)).toBeNull();
    expect(await lock.remainTimeToLive()).toBe(-2);
    await (await lock.lock()).unlock();
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

  test("Java re-enters: Node sees the count go 1, 2, 1 and is let in after that", async () => {
    const name = scene.name();
    const thread = await scene.thread();
    const java = thread.lock("lock", name);
    const lock = scene.node.getLock(name);
    const seen = async (): Promise<number | undefined> => {
      expect(await lock.tryLock()).toBeNull();
      const count = (await scene.node.inspect(name))?.holders[0]?.count;
      expect(await scene.redis.hget(name, thread.owner)).toBe(String(count));
      return count;
    };
    await java.lock();
    expect(await seen()).toBe(1);
    expect(await java.tryLock()).toBe(true);
    expect(await seen()).toBe(2);
    await java.unlock();
    expect(await seen()).toBe(1);
    await java.unlock();
    await (await lock.lock({ wait: 0 })).unlock();
  });

  test("Node re-enters: Java sees the lock taken until the count is 0", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("lock", name);
    const lock = scene.node.getLock(name);
    await scene.node.scope(async () => {
      const { ownerId } = await lock.lock();
      const seen = async (count: string): Promise<void> => {
        expect(await java.tryLock()).toBe(false);
        expect(await scene.redis.hget(name, ownerId)).toBe(count);
        expect(await lock.getHoldCount()).toBe(Number(count));
      };
      await seen("1");
      await lock.lock();
      await seen("2");
      await lock.unlock();
      await seen("1");
      await lock.unlock();
    });
    expect(await java.tryLock()).toBe(true);
    await java.unlock();
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
    const wait = 4_000; // a Redisson whose wait ends while it subscribes may stay subscribed
    const name = scene.name();
    const java = (await scene.thread()).lock("lock", name);
    const lock = scene.node.getLock(name);
    const hold = await lock.lock();
    const inJava = await parked(scene, name, () => java.tryLock(wait));
    expect(await inJava.promise).toBe(false);
    expect(inJava.took).toBeGreaterThanOrEqual(wait);
    await hold.unlock();
    await expectNothingLeft(scene, name);
    await java.lock();
    const begun = performance.now();
    expect(await lock.tryLock(wait)).toBeNull();
    expect(performance.now() - begun).toBeGreaterThanOrEqual(wait - 1);
    await expect(lock.lock({ wait: 2_500 })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
    await java.unlock();
    await expectNothingLeft(scene, name);
  });

  test("Java's lease ends: Node, which waits, is let in then, and Java's unlock is refused", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("lock", name);
    const begun = performance.now();
    await java.lock(SHORT);
    const waiting = await parked(scene, name, () => waiter().getLock(name).lock());
    const hold = await soon(waiting);
    expect(performance.now() - begun).toBeGreaterThan(SHORT - 50);
    await expect(java.unlock()).rejects.toMatchObject({ javaClass: STRANGER });
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  });

  test("Node's lease ends: Java, which waits, is let in then, and Node's unlock tells the loss", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("lock", name);
    const begun = performance.now();
    const hold = await scene.node.getLock(name).lock({ lease: SHORT });
    await soon(await parked(scene, name, () => java.lock()));
    expect(performance.now() - begun).toBeGreaterThan(SHORT - 50);
    expect(hold.signal.aborted).toBe(true);
    const error: unknown = await hold.unlock().catch((thrown: unknown) => thrown);
    expect(isLockError(error, "LOCK_LOST")).toBe(true);
    expect(await java.isHeldByCurrentThread()).toBe(true);
    await java.unlock();
  });

  function waiter() {
    return scene.newNode({ pollCap: NEVER });
  }
});
