/** `replicas: 1` on a cluster: an acknowledged grant outlives its master, and an unacknowledged one leaves nothing. */
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, isLockError } from "../../src/index.js";
import { byName, KINDS, type Kind } from "../contract/kinds.js";
import { isMarker } from "../contract/wire.js";
import {
  hardFailover,
  moveSlot,
  politeFailover,
  type RedisServer,
  rejoin,
  replicaOf,
  until,
} from "../support/index.js";
import { Crew, locksOn, namesOn, SOON, useReplicatedCluster, waitFor } from "./cluster-crew.js";

/** The number of grants of each kind that are acknowledged before the master dies. */
const ENOUGH = 20;

const cluster = await useReplicatedCluster();
let crew: Crew;

beforeEach(() => {
  crew = new Crew(cluster);
});

/** The keys on its master that make the lock held or awaited. */
async function keysOf(master: RedisServer, kind: Kind, name: string): Promise<string[]> {
  const keys = await master.call("KEYS", `*${name}*`);
  return Array.isArray(keys) ? keys.map(String).filter((key) => !isMarker(key) && !kind.keeps(key)) : [];
}

test("grants that were acknowledged until the master died are all there afterwards", async () => {
  const { client, events } = await crew.join({ replicas: 1, replicasTimeout: 300, watchdogTimeout: 20_000 });
  const master = await cluster.masterFor("here");
  const acknowledged: { kind: Kind; hold: Hold }[] = [];
  const failed: { kind: Kind; name: string; error: unknown; begun: number }[] = [];
  const names = await Promise.all(KINDS.map((kind) => namesOn(master, kind.name, 200)));
  let dead = false;
  const stream = async (kind: Kind, lockNames: readonly string[]): Promise<void> => {
    for (const name of lockNames) {
      if (dead) return;
      const begun = performance.now();
      try {
        const hold = await kind.make(client, name).lock();
        // Even if its answer is read after the death, it was acknowledged before: the new master has no replica yet.
        acknowledged.push({ kind, hold });
      } catch (error) {
        failed.push({ kind, name, error, begun });
      }
    }
  };
  const streams = KINDS.map((kind, i) => stream(kind, names[i] ?? []));
  const enough = () => {
    return KINDS.every((kind) => acknowledged.filter((each) => each.kind === kind).length >= ENOUGH);
  };
  await until("enough are acknowledged", enough, { timeout: SOON, every: 1 });
  // From now on no replica gets the master's grants. It is also paused, because it would still read what its socket has.
  const replica = await replicaOf(cluster, master);
  replica.pause();
  await master.call("CLIENT", "KILL", "TYPE", "replica");
  const cutAt = performance.now();
  const ended = () => acknowledged.length + failed.length;
  const before = ended();
  await until("more calls have come to their end", () => ended() >= before + 3 * KINDS.length, {
    timeout: SOON,
  });
  const dying = master.kill();
  dead = true;
  await dying;
  replica.resume();
  const failover = await hardFailover(cluster, "here", master);
  await Promise.all(streams);
  for (const { kind, hold } of acknowledged) {
    const fields = kind.fields(hold.ownerId, 1);
    expect(await failover.after.call("HMGET", hold.lockName, ...Object.keys(fields))).toEqual(
      Object.values(fields),
    );
    expect(hold.isHeld).toBe(true);
  }
  for (const { kind, name, error, begun } of failed) {
    expect(isLockError(error, "REPLICAS") || isLockError(error, "UNAVAILABLE"), String(error)).toBe(true);
    // A grant from before the cut may be on the replica without its undo; it ends with its lease.
    if (begun < cutAt) continue;
    await until(
      `${name} leaves nothing`,
      async () => (await keysOf(failover.after, kind, name)).length === 0,
      {
        timeout: SOON,
      },
    );
  }
  expect(events.filter(({ name }) => name === "lost")).toEqual([]);
  await Promise.all(acknowledged.map(({ hold }) => hold.unlock()));
  console.log(
    `replicas 1: ${acknowledged.length} acknowledged grants outlived their master, ${failed.length} calls failed`,
  );
  await crew.close();
  await rejoin(cluster, failover.before);
});

test("goes on after its slot has moved, and after the master has handed over to its replica [B26]", async () => {
  const { client } = await crew.join({ replicas: 1 });
  const { client: waiter } = await crew.join({ replicas: 1 });
  const master = await cluster.masterFor("here");
  const locks = await locksOn(master, KINDS);
  const took: number[] = [];
  const serve = async (): Promise<void> => {
    const begun = performance.now();
    for (const [kind, name] of locks) {
      const hold = await until("a grant is acknowledged", () => kind.make(client, name).lock(), {
        timeout: SOON,
      });
      const { hold: next } = waitFor(kind.rival.make(waiter, name));
      await hold.unlock();
      await (await next).unlock();
    }
    took.push(performance.now() - begun);
  };
  await serve();
  const other = (await cluster.masters()).find((node) => node !== master);
  for (const [, name] of locks) await moveSlot(cluster, name, other);
  await serve();
  for (const [, name] of locks) await moveSlot(cluster, name, master);
  await serve();
  await politeFailover(cluster, "here");
  await serve();
  expect(took.map((ms) => ms < SOON)).toEqual([true, true, true, true]);
  console.log(`replicas 1: ${KINDS.length} kinds served in ${took.map(Math.round).join(", ")} ms`);
  await crew.close();
});

describe("while the replica stands still", () => {
  let master: RedisServer;
  let replica: RedisServer;

  beforeAll(async () => {
    master = await cluster.masterFor("here");
    replica = await replicaOf(cluster, master);
  });

  test.each(byName())(
    "a call for the %s rejects, and leaves nothing behind",
    async (_, kind) => {
      const [patient, plain] = await Promise.all([
        crew.join({ replicas: 1, replicasTimeout: 300 }),
        crew.join({ replicas: 0 }),
      ]);
      const [[, name] = [kind, ""]] = await locksOn(master, [kind]);
      const lock = kind.make(patient.client, name);
      // First an acknowledged grant: the nodes take a paused replica for dead, and that must not be over too early.
      await until("a grant is acknowledged", () => lock.run(() => true), { timeout: SOON });
      replica.pause();
      try {
        const short = { code: "REPLICAS", acknowledged: 0, required: 1, lockName: name };
        await expect(lock.lock()).rejects.toMatchObject(short);
        expect(await keysOf(master, kind, name)).toEqual([]);
        await expect(lock.tryLock(10_000, 20_000)).rejects.toMatchObject(short);
        await expect(lock.run(() => {})).rejects.toMatchObject(short);
        expect(await keysOf(master, kind, name)).toEqual([]);
        const next = await kind.rival.make(plain.client, name).tryLock();
        expect(next).not.toBeNull();
        await next?.unlock();
      } finally {
        replica.resume();
      }
      const hold = await until("a grant is acknowledged again", () => lock.lock(), { timeout: SOON });
      await hold.unlock();
      await crew.close();
    },
    30_000,
  );
});
