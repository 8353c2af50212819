/** How long the holds of both sides last together, and how a writer goes on as a reader. */
import { expect, test } from "vitest";
import { readWriteChannel } from "../../../src/base/names.js";
import { failOnUnhandledRejections, pause, soon, watch } from "../../faults/harness.js";
import { SLACK, until, untilGone } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { type Scene, withRedisson } from "../scene.js";
import { failure, keysLeft, newParty, parked, readTtl, SIDES, saysLost } from "./party.js";
import { DIRECTIONS } from "./sides.js";

failOnUnhandledRejections();

const LEASE = 4_000;

withRedisson("holds of a read-write lock", (scene) => {
  for (const [one, other] of DIRECTIONS) {
    test(`${one} writes twice and must leave twice before ${other} gets in`, async () => {
      const name = scene.name();
      const [mine, theirs] = await Promise.all([newParty(scene, one), newParty(scene, other)]);
      await mine.take("write", name).lock(20_000);
      await mine.take("write", name).lock(20_000);
      expect(await scene.redis.hgetall(name)).toEqual({ mode: "write", [`${mine.owner}:write`]: "2" });
      // Redisson adds up the leases of nested writes; in this library each hold has its own lease.
      const most = one === "Java" ? 40_000 : 20_000;
      const ttl = await theirs.take("write", name).remainTimeToLive();
      expect(ttl).toBeGreaterThan(most - 8_000);
      expect(ttl).toBeLessThanOrEqual(most);
      const waiting = await parked(scene, theirs, () => theirs.take("read", name).lock(NEVER));
      await mine.take("write", name).unlock();
      expect(await scene.redis.hget(name, `${mine.owner}:write`)).toBe("1");
      expect(waiting.state).toBe("pending");
      await mine.take("write", name).unlock();
      await soon(waiting);
      await theirs.take("read", name).unlock();
    });

    for (const kind of ["read", "write"] as const) {
      test(`the lease of a ${one} ${kind} hold ends: ${other} gets in without a message, and ${one} is told`, async () => {
        const name = scene.name();
        const [mine, theirs] = await Promise.all([newParty(scene, one), newParty(scene, other)]);
        await mine.take(kind, name).lock(LEASE);
        const waiting = await parked(scene, theirs, () => theirs.take("write", name).lock(NEVER));
        await soon(waiting);
        expect(waiting.took).toBeLessThan(LEASE + SLACK);
        expect(await failure(mine.take(kind, name).unlock())).toSatisfy(saysLost);
        expect(await theirs.take("write", name).isLocked()).toBe(true);
        await theirs.take("write", name).unlock();
      });
    }

    test(`a ${one} writer goes on as a reader: readers of ${other} get in, writers do not`, async () => {
      const name = scene.name();
      const [mine, theirs] = await Promise.all([newParty(scene, one), newParty(scene, other)]);
      await mine.take("write", name).lock(NEVER);
      await mine.take("read", name).lock(NEVER);
      expect(await theirs.take("read", name).tryLock()).toBe(false);
      await mine.take("write", name).unlock();
      expect(await theirs.take("write", name).tryLock()).toBe(false);
      expect(await theirs.take("read", name).tryLock(0, NEVER)).toBe(true);
      await mine.take("read", name).unlock();
      expect(await theirs.take("read", name).getHoldCount()).toBe(1);
      await theirs.take("read", name).unlock();
      expect(await keysLeft(scene, name)).toEqual([]);
    });
  }

  test("a Node writer that goes on as a reader wakes the readers that wait in Java", async () => {
    const name = scene.name();
    const writer = await newParty(scene, "Node");
    await writer.take("write", name).lock(NEVER);
    await writer.take("read", name).lock(NEVER);
    const readers = await Promise.all([newParty(scene, "Java"), newParty(scene, "Java")]);
    const waiting = [];
    for (const each of readers)
      waiting.push(await parked(scene, each, () => each.take("read", name).lock(NEVER)));
    await writer.take("write", name).unlock();
    await Promise.all(waiting.map((each) => soon(each)));
    for (const each of [writer, ...readers]) await each.take("read", name).unlock();
  });

  test("a Java writer that goes on as a reader tells nobody: readers in Node come by pollCap", async () => {
    const name = scene.name();
    const heard: string[] = [];
    const ear = scene.redis.duplicate();
    ear.on("message", (_, message: string) => heard.push(message));
    await ear.subscribe(readWriteChannel(name));
    const writer = await newParty(scene, "Java");
    await writer.take("write", name).lock(NEVER);
    await writer.take("read", name).lock(NEVER);
    const [patient, polling] = [
      await newParty(scene, "Node"),
      await newParty(scene, "Node", { node: { pollCap: 500 } }),
    ];
    const never = await parked(scene, patient, () => patient.take("read", name).lock(NEVER));
    const waiting = watch(polling.take("read", name).lock(NEVER));
    await until("it listens", async () => (await listening(scene, name)) === 3);
    await writer.take("write", name).unlock();
    await soon(waiting);
    expect(never.state).toBe("pending");
    expect(heard).toEqual([]);
    await polling.take("read", name).unlock();
    await writer.take("read", name).unlock();
    await soon(never);
    expect(heard).toEqual(["0"]);
    await patient.take("read", name).unlock();
    ear.disconnect();
  });

  test("a Java reader and a Node reader renew side by side, and neither loses anything", async ({ skip }) => {
    if (!scene.atLeast("3.40.0")) skip(`Redisson ${scene.version} does not renew its readers' holds in time`);
    const name = scene.name();
    const java = await scene.newJava({ watchdog: LEASE });
    const readers = await Promise.all(
      SIDES.map((side) => newParty(scene, side, { java, node: { watchdogTimeout: LEASE } })),
    );
    for (const each of readers) await each.take("read", name).lock();
    const stranger = await newParty(scene, "Node");
    const ends = performance.now() + 2.5 * LEASE;
    while (performance.now() < ends) {
      for (const { owner } of readers) expect(await readTtl(scene, name, owner)).toBeGreaterThan(0);
      expect(await scene.redis.pttl(name)).toBeGreaterThan(0);
      expect(await stranger.take("write", name).tryLock()).toBe(false);
      await pause(50);
    }
    for (const each of readers) await each.take("read", name).unlock();
    expect(await keysLeft(scene, name)).toEqual([]);
  });

  /** A Node reader with a lease, and a Java reader whose renewal has shortened the TTL that they share. */
  const leasedBesideRenewed = async (name: string) => {
    const leased = await scene.newNode().getReadWriteLock(name).readLock().lock({ lease: NEVER });
    const java = await scene.newJava({ watchdog: LEASE });
    const beside = (await scene.thread(java)).lock("read", name);
    await beside.lock();
    await until("Java has renewed", async () => (await scene.redis.pttl(name)) <= LEASE);
    return { leased, java, beside };
  };
  // Before 4.4.0 Java renews the holds of all readers as if they were its own.
  const renewsItsOwn = scene.atLeast("4.4.0");

  test("a Java reader cuts the TTL that it shares with a leased Node reader: if Java dies the lease ends early, and says so", async () => {
    const name = scene.name();
    const { leased, java } = await leasedBesideRenewed(name);
    const ttl = await readTtl(scene, name, leased.ownerId);
    if (renewsItsOwn) expect(ttl).toBeGreaterThan(NEVER / 2);
    else expect(ttl).toBeLessThanOrEqual(LEASE);
    await java.close();
    const writer = await newParty(scene, "Java");
    await soon(watch(writer.take("write", name).lock(NEVER)));
    await expect(leased.extend(NEVER)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    expect(leased.isHeld).toBe(false);
    expect(leased.signal.aborted).toBe(true);
    await expect(leased.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(await writer.take("write", name).isLocked()).toBe(true);
    await writer.take("write", name).unlock();
  });

  test("a leased Node reader beside a Java reader that leaves in time: from 4.4.0 on it has its TTL back, before it is lost", async () => {
    const name = scene.name();
    const { leased, beside } = await leasedBesideRenewed(name);
    await beside.unlock();
    const ttl = await scene.redis.pttl(name);
    if (renewsItsOwn) {
      expect(ttl).toBeGreaterThan(NEVER / 2);
      await leased.unlock();
    } else {
      expect(ttl).toBeLessThanOrEqual(LEASE);
      await untilGone(scene.redis, name);
      await expect(leased.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    }
    expect(await keysLeft(scene, name)).toEqual([]);
  });

  test("a Node reader that asks to write is refused at once, and the Java reader beside it goes on", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("read", name);
    await java.lock(NEVER);
    const { node } = scene;
    const both = node.getReadWriteLock(name);
    const read = await both.readLock().lock({ lease: NEVER });
    await expect(both.writeLock().lock({ owner: read })).rejects.toMatchObject({ code: "UPGRADE_REFUSED" });
    expect(await java.getHoldCount()).toBe(1);
    expect(read.isHeld).toBe(true);
    await read.unlock();
    await java.unlock();
    expect(await keysLeft(scene, name)).toEqual([]);
  });
});

async function listening({ redis }: Scene, name: string): Promise<number> {
  return Number((await redis.pubsub("NUMSUB", readWriteChannel(name)))[1]);
}
