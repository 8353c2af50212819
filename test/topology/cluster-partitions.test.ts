/** Masters of a cluster that fall silent, or die with writes that no replica has. */
import { beforeEach, expect, test } from "vitest";
import { KINDS } from "../contract/kinds.js";
import {
  hardFailover,
  hasShardedPubSub,
  type RedisServer,
  rejoin,
  replicaOf,
  until,
  untilInStep,
  untilReplicated,
  untilTakenOver,
} from "../support/index.js";
import {
  Crew,
  locksOn,
  type Member,
  SHARDED,
  SOON,
  untilListening,
  useReplicatedCluster,
  waitFor,
} from "./cluster-crew.js";

const cluster = await useReplicatedCluster();
let crew: Crew;

beforeEach(() => {
  crew = new Crew(cluster);
});

/**
 * From now on no replica gets this master's writes. It is also paused, because it would still read what its socket has.
 */
async function cutOff(master: RedisServer): Promise<RedisServer> {
  const replica = await replicaOf(cluster, master);
  await untilReplicated(master, replica);
  replica.pause();
  await master.call("CLIENT", "KILL", "TYPE", "replica");
  await until("the replica is cut off", async () => {
    return (await master.info("replication")).get("connected_slaves") === "0";
  });
  return replica;
}

test("a master that stands still is left for the one that took over: holds are kept, waiters and calls go on [B25]", async () => {
  const master = await cluster.masterFor("here");
  const ways = (await hasShardedPubSub()) ? SHARDED : SHARDED.filter((way) => way !== true);
  const parties = await Promise.all(
    ways.map(async (shardedPubSub) => {
      // The time-outs are such that after an unanswered renewal there is time for another one.
      const options = { shardedPubSub, watchdogTimeout: 18_000, commandTimeout: 5_000 };
      const [ours, theirs] = await Promise.all([crew.join(options), crew.join(options)]);
      const locks = await locksOn(master, KINDS);
      const names = locks.map(([, name]) => name);
      const holds = await Promise.all(locks.map(([kind, name]) => kind.make(ours.client, name).lock()));
      const waiting = locks.map(([kind, name]) => waitFor(kind.rival.make(theirs.client, name)));
      await untilListening(cluster, names, shardedPubSub);
      return { shardedPubSub, ours, theirs, names, holds, waiting };
    }),
  );
  const replica = await replicaOf(cluster, master);
  await untilReplicated(master, replica);
  const stillAt = performance.now();
  master.pause();
  await untilTakenOver(cluster, "here", master, stillAt);
  const goOn = async ({ shardedPubSub, ours, names, holds, waiting }: (typeof parties)[number]) => {
    await Promise.all(names.map((name) => ours.renews(name, 1, SOON)));
    const renewedAt = performance.now();
    expect(holds.map((hold) => hold.isHeld)).toEqual(KINDS.map(() => true));
    await Promise.all(holds.map((hold) => hold.unlock()));
    await until("the waiters have theirs", () => waiting.every(({ grantedAt }) => grantedAt), {
      timeout: SOON,
    });
    await Promise.all(waiting.map(async ({ hold }) => (await hold).unlock()));
    console.log(
      `silent master, shardedPubSub ${shardedPubSub}: renewed after ${Math.round(renewedAt - stillAt)} ms, ` +
        `waiters ${waiting.map(({ grantedAt = Number.NaN }) => Math.round(grantedAt - renewedAt)).join(", ")} ms later`,
    );
  };
  await Promise.all(parties.map(goOn));
  const members = parties.flatMap(({ ours, theirs }): Member[] => [ours, theirs]);
  expect(members.flatMap(({ events }) => events.filter(({ name }) => name === "lost"))).toEqual([]);
  master.resume();
  await untilInStep(master);
  await crew.close();
});

test("a grant that died with its master is told as lost, and the next one has it alone", async () => {
  const master = await cluster.masterFor("here");
  const [ours, theirs] = await Promise.all([crew.join({ watchdogTimeout: 12_000 }), crew.join()]);
  const locks = await locksOn(master, KINDS);
  const replica = await cutOff(master);
  const holds = await Promise.all(locks.map(([kind, name]) => kind.make(ours.client, name).lock()));
  await master.kill();
  replica.resume();
  const failover = await hardFailover(cluster, "here", master);
  const next = await Promise.all(locks.map(([kind, name]) => kind.rival.make(theirs.client, name).lock()));
  await until("all losses are told", () => holds.every((hold) => hold.signal.aborted), { timeout: SOON });
  expect(holds.map((hold) => hold.signal.reason)).toEqual(
    KINDS.map(() => expect.objectContaining({ code: "LOCK_LOST", reason: "taken" })),
  );
  expect(holds.map((hold) => hold.isHeld)).toEqual(KINDS.map(() => false));
  for (const hold of holds) await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect(next.map((hold) => hold.isHeld)).toEqual(KINDS.map(() => true));
  for (const [kind, name] of locks) expect(await kind.make(ours.client, name).tryLock()).toBeNull();
  await Promise.all(next.map((hold) => hold.unlock()));
  expect(theirs.events.filter(({ name }) => name === "lost")).toEqual([]);
  await crew.close();
  await rejoin(cluster, failover.before);
});

test("a release that died with its master: the lock is free when its lease is over", async () => {
  const master = await cluster.masterFor("here");
  const [ours, theirs] = await Promise.all([crew.join({ watchdogTimeout: 6_000 }), crew.join()]);
  const locks = await locksOn(master, KINDS);
  const holds = await Promise.all(locks.map(([kind, name]) => kind.make(ours.client, name).lock()));
  const replica = await cutOff(master);
  await Promise.all(holds.map((hold) => hold.unlock()));
  await master.kill();
  replica.resume();
  const failover = await hardFailover(cluster, "here", master);
  const taken = locks.map(([kind, name]) => kind.make(ours.client, name).isLocked());
  expect(await Promise.all(taken)).toEqual(KINDS.map(() => true));
  const next = await Promise.all(locks.map(([kind, name]) => kind.rival.make(theirs.client, name).lock()));
  await Promise.all(next.map((hold) => hold.unlock()));
  expect([...ours.events, ...theirs.events].filter(({ name }) => name === "lost")).toEqual([]);
  await crew.close();
  await rejoin(cluster, failover.before);
});
