/** Slots that move while locks are held, awaited and worked under: only time is lost. */
import { beforeEach, describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  allKeys,
  closeMove,
  forFile,
  moveKeys,
  moveSlot,
  named,
  needSharded,
  openMove,
  startCluster,
  startClusterProxy,
  UNHURRIED,
  until,
} from "../support/index.js";
import { PLAIN, READ, SINGLE } from "../support/place/kinds.js";
import { Crew, namesOn, SHARDED, untilListening, waitFor } from "./cluster-crew.js";
import { Load } from "./load.js";

/** Milliseconds: no waiter gets the lock by a poll within the test. */
const NEVER = 60_000;
const SOON = 10_000;
const ROUNDS = 6;

failOnUnhandledRejections();
const cluster = await forFile(startCluster({ masters: 3 }));
const looker = cluster.connect();

/** A fresh name for each kind, spread over the masters. */
async function freshNames(title: string): Promise<string[]> {
  const masters = await cluster.masters();
  const names = SINGLE.map(async ({ name }, i) => {
    const master = masters[i % masters.length];
    return master === undefined ? [] : namesOn(master, `${title} ${name}`, 1);
  });
  return (await Promise.all(names)).flat();
}

describe.each(SHARDED)("with shardedPubSub %s", (shardedPubSub) => {
  beforeEach((context) => needSharded(shardedPubSub, context));

  test("to and fro under load: no update is lost, no hold, no wake-up [F15] [B17]", async () => {
    await using crew = new Crew(cluster);
    const load = new Load();
    const [ours, theirs] = await Promise.all([
      crew.join({ shardedPubSub, watchdogTimeout: 6_000, commandTimeout: 10_000 }),
      crew.join({ shardedPubSub, watchdogTimeout: 6_000, commandTimeout: 10_000 }),
    ]);
    const worked = await freshNames("work");
    const kept = await freshNames("kept");
    const holds = await Promise.all(SINGLE.map((kind, i) => kind.make([ours.client], kept[i] ?? "").lock()));
    const waiting = SINGLE.map((kind, i) => waitFor(kind.rival.make([theirs.client], kept[i] ?? "")));
    for (const [i, kind] of SINGLE.entries()) load.man(kind, [ours.client, theirs.client], worked[i] ?? "");
    const renewed = () => Math.min(...kept.map((name) => ours.told("renewed", name).length));
    for (let round = 0; round < ROUNDS || renewed() < 2; round++) {
      for (const name of [...worked, ...kept]) await moveSlot(cluster, name);
      await Promise.all(worked.map((name) => load.goesOn(name, 2, SOON)));
    }
    expect(holds.map((hold) => hold.isHeld)).toEqual(SINGLE.map(() => true));
    expect(waiting.map(({ grantedAt }) => grantedAt)).toEqual(SINGLE.map(() => undefined));
    await Promise.all(holds.map((hold) => hold.unlock()));
    await Promise.all(waiting.map(async ({ hold }) => (await hold).unlock()));
    await load.stop();
    const { losses, silences, strange } = load;
    expect({ violations: load.violations(), losses, silences, strange }).toEqual({
      violations: [],
      losses: [],
      silences: 0,
      strange: [],
    });
    const troubles = [ours, theirs].flatMap(({ events }) => {
      return events.filter(({ name }) => name === "lost" || name === "error");
    });
    expect(troubles).toEqual([]);
  });

  test.each([
    ["away", 1],
    ["there and back", 2],
  ])("a slot that goes %s: the release wakes the waiter by a message", async (_, moves) => {
    await using crew = new Crew(cluster);
    const [ours, theirs] = await Promise.all([
      crew.join({ shardedPubSub, pollCap: NEVER }),
      crew.join({ shardedPubSub, pollCap: NEVER }),
    ]);
    const names = await freshNames("woken");
    const homes = await Promise.all(names.map((name) => cluster.masterFor(name)));
    const holds = await Promise.all(
      SINGLE.map((kind, i) => kind.make([theirs.client], names[i] ?? "").lock()),
    );
    const waiting = SINGLE.map((kind, i) => waitFor(kind.rival.make([ours.client], names[i] ?? "")));
    await untilListening(cluster, names, shardedPubSub);
    for (const [i, name] of names.entries()) {
      await moveSlot(cluster, name);
      if (moves === 2) await moveSlot(cluster, name, homes[i]);
    }
    await Promise.all(holds.map((hold) => hold.unlock()));
    await until("all have theirs", () => waiting.every(({ grantedAt }) => grantedAt), { timeout: SOON });
    await Promise.all(waiting.map(async ({ hold }) => (await hold).unlock()));
  });
});

test("a connection that ends while ioredis asks the new master by it costs a try, not the process [B48]", async () => {
  await using proxy = await startClusterProxy(cluster);
  await using client = new LockClient(proxy.connect(), UNHURRIED);
  const [master] = await cluster.masters();
  if (master === undefined) throw new Error("no master");
  const [name = ""] = await namesOn(master, "asked", 1);
  const move = await openMove(cluster, name);
  const cut = proxy.proxies.get(move.to.port)?.cutReplyOf(named("asking"));
  const locking = client.getLock(name).lock();
  await until("the connection has ended", () => cut?.hits === 1);
  await closeMove(cluster, move);
  await (await locking).unlock();
});

describe.concurrent.each([PLAIN, READ].map((kind) => [kind.name, kind] as const))(
  "%s: while its keys are on two masters [F23]",
  (_, kind) => {
    test.each(["its hash", "all but its hash"])(
      "%s having moved, the hold is kept and given back [B24]",
      async (part) => {
        await using crew = new Crew(cluster);
        const [ours, theirs] = await Promise.all([
          crew.join({ watchdogTimeout: 6_000 }),
          crew.join({ pollCap: NEVER }),
        ]);
        const [master] = await cluster.masters();
        if (master === undefined) throw new Error("no master");
        const [name = ""] = await namesOn(master, `half ${kind.name}`, 1);
        const hold = await kind.make([ours.client], name).lock();
        const waiting = waitFor(kind.rival.make([theirs.client], name));
        await untilListening(cluster, [name], "auto");
        const others = [...(await allKeys(looker, name)).keys()].filter((key) => key !== name);
        const move = await openMove(cluster, name);
        await moveKeys(move, part === "its hash" ? [name] : others);
        const renewal = () =>
          ["renewed", "suspended", "lost"].some((event) => ours.told(event as "lost", name).length > 0);
        await until("a renewal was tried", renewal, { timeout: 6_000 });
        const count = kind.make([ours.client], name).getHoldCount({ owner: hold });
        await moveKeys(move);
        await closeMove(cluster, move);
        await ours.renews(name, 1);
        expect(hold.isHeld).toBe(true);
        expect(ours.told("lost", name)).toEqual([]);
        expect(await count).toBe(1);
        await hold.unlock();
        await (await waiting.hold).unlock();
      },
    );

    test("an unlock meanwhile waits for the rest of the move, and the waiter gets the lock", async () => {
      await using crew = new Crew(cluster);
      const [ours, theirs] = await Promise.all([crew.join(), crew.join({ pollCap: NEVER })]);
      const [master] = await cluster.masters();
      if (master === undefined) throw new Error("no master");
      const [name = ""] = await namesOn(master, `back ${kind.name}`, 1);
      const hold = await kind.make([ours.client], name).lock();
      const waiting = waitFor(kind.rival.make([theirs.client], name));
      await untilListening(cluster, [name], "auto");
      const move = await openMove(cluster, name);
      await moveKeys(move, [name]);
      const given = hold.unlock();
      await moveKeys(move);
      await closeMove(cluster, move);
      await given;
      await (await waiting.hold).unlock();
      expect(await kind.make([ours.client], name).isLocked()).toBe(false);
    });
  },
);
