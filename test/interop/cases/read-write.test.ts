/** Readers and writers of both sides on one read-write lock: beside each other, and who wakes whom. */
import { expect, test } from "vitest";
import { readHold } from "../../../src/base/names.js";
import { PATIENCE, until, watch } from "../../support/index.js";
import { NEVER } from "../calls.js";
import { DIRECTIONS, type Side } from "../party.js";
import { type PartyOptions, soon, withRedisson } from "../scene.js";

/** Milliseconds of the watchdogs that must renew during a test. */
const WATCHDOG = 4_500;
const SIDES: readonly Side[] = ["Java", "Node"];

withRedisson("read-write lock", (scene) => {
  const reads = async (side: Side, name: string, lease: number | undefined, options?: PartyOptions) => {
    const party = await scene.party(side, options);
    const lock = party.lock("read", name);
    await lock.lock(lease);
    return { party, lock };
  };
  const readTtl = (name: string, owner: string) => scene.redis.pttl(readHold(name, owner, 1));

  test.each(DIRECTIONS.flatMap(([one, other]) => SIDES.map((side) => [side, one, other] as const)))(
    "a waiting %s writer is kept out by readers of both sides, and woken when the %s one leaves after the %s one",
    async (side, one, other) => {
      const name = scene.name();
      const first = await reads(other, name, NEVER);
      const last = await reads(one, name, NEVER);
      const writer = await scene.party(side);
      const lock = writer.lock("write", name);
      expect(await lock.tryLock()).toBe(false);
      const waiting = await writer.parked(() => lock.lock(NEVER));
      await first.lock.unlock();
      await scene.redis.ping();
      expect(waiting.state).toBe("pending");
      await last.lock.unlock();
      await soon(waiting);
      await lock.unlock();
      await scene.expectNothingLeft(name);
    },
  );

  test.each<[one: Side, how: string, poll: number]>([
    ["Node", "wakes", NEVER],
    ["Java", "tells nobody, and does not wake", 500],
  ])(
    "a %s writer that goes on as a reader %s readers of the other side, who come by pollCap at last",
    async (one, _, pollCap) => {
      const name = scene.name();
      const writer = await scene.party(one);
      await writer.lock("write", name).lock(NEVER);
      await writer.lock("read", name).lock(NEVER);
      const patient = await scene.party(one === "Node" ? "Java" : "Node");
      const silent = await patient.parked(() => patient.lock("read", name).lock(NEVER));
      const polling = scene.node({ pollCap });
      const waiting = watch(polling.lock("read", name).lock(NEVER));
      await until("the other one waits, too", () => polling.client.stats().waiting === 1);
      await writer.lock("write", name).unlock();
      await soon(waiting);
      if (one === "Java") expect(silent.state).toBe("pending");
      await polling.lock("read", name).unlock();
      await writer.lock("read", name).unlock();
      await soon(silent);
      await patient.lock("read", name).unlock();
    },
  );

  test("living readers renew side by side, and keep no dead reader of a killed JVM alive", {
    timeout: 4 * PATIENCE,
  }, async () => {
    const name = scene.name();
    const jvm = scene.newJvm();
    const dead = await reads("Java", name, undefined, {
      java: await scene.newJava({ watchdog: WATCHDOG }, jvm),
    });
    const java = await scene.newJava({ watchdog: WATCHDOG });
    const living: Awaited<ReturnType<typeof reads>>[] = [];
    for (const side of SIDES)
      living.push(await reads(side, name, undefined, { java, node: { watchdogTimeout: WATCHDOG } }));
    await jvm.kill();
    await until("the dead one's hold has lapsed", async () => (await readTtl(name, dead.party.owner)) === -2);
    const ends = performance.now() + 2 * WATCHDOG;
    await until(
      "two more leases have gone by",
      async () => {
        for (const { party } of living) expect(await readTtl(name, party.owner)).toBeGreaterThan(0);
        return performance.now() > ends;
      },
      { timeout: 2 * PATIENCE },
    );
    for (const { party } of living) expect(await readTtl(name, party.owner)).toBeGreaterThan(0);
    expect(await readTtl(name, dead.party.owner)).toBe(-2);
    const writer = await scene.party("Java");
    const waiting = await writer.parked(() => writer.lock("write", name).lock(NEVER));
    for (const { lock } of living) await lock.unlock();
    await soon(waiting);
    await writer.lock("write", name).unlock();
  });

  test("Java's renewal cuts the TTL that a leased Node reader shares: if Java dies then, the lease ends early, and says so", async () => {
    const name = scene.name();
    const leased = await scene.newNode().getReadWriteLock(name).readLock().lock({ lease: NEVER });
    const java = await scene.newJava({ watchdog: WATCHDOG });
    await reads("Java", name, undefined, { java });
    await until("Java has renewed", async () => (await scene.redis.pttl(name)) <= WATCHDOG);
    await java.close();
    const writer = await scene.party("Java");
    await soon(watch(writer.lock("write", name).lock(NEVER)));
    await expect(leased.extend(NEVER)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    expect([leased.isHeld, leased.signal.aborted]).toEqual([false, true]);
    await writer.lock("write", name).unlock();
  });
});
