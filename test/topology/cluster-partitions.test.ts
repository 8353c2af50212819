/** A master of a cluster that falls silent, and that its replica replaces. */
import { expect, test } from "vitest";
import {
  hasShardedPubSub,
  replicaOf,
  until,
  untilInStep,
  untilReplicated,
  untilTakenOver,
} from "../support/index.js";
import { SINGLE } from "../support/place/kinds.js";
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
test("a master that stands still is left for the one that took over: holds are kept, waiters and calls go on [B25]", async () => {
  await using crew = new Crew(cluster);
  const master = await cluster.masterFor("here");
  const ways = (await hasShardedPubSub()) ? SHARDED : SHARDED.filter((way) => way !== true);
  const parties = await Promise.all(
    ways.map(async (shardedPubSub) => {
      // The time-outs are such that after an unanswered renewal there is time for another one.
      const options = { shardedPubSub, watchdogTimeout: 18_000, commandTimeout: 5_000 };
      const [ours, theirs] = await Promise.all([crew.join(options), crew.join(options)]);
      const locks = await locksOn(master, SINGLE);
      const names = locks.map(([, name]) => name);
      const holds = await Promise.all(locks.map(([kind, name]) => kind.make([ours.client], name).lock()));
      const waiting = locks.map(([kind, name]) => waitFor(kind.rival.make([theirs.client], name)));
      await untilListening(cluster, names, shardedPubSub);
      return { ours, theirs, names, holds, waiting };
    }),
  );
  const replica = await replicaOf(cluster, master);
  await untilReplicated(master, replica);
  const stillAt = performance.now();
  master.pause();
  await untilTakenOver(cluster, "here", master, stillAt);
  const goOn = async ({ ours, names, holds, waiting }: (typeof parties)[number]) => {
    await Promise.all(names.map((name) => ours.renews(name, 1, SOON)));
    expect(holds.map((hold) => hold.isHeld)).toEqual(SINGLE.map(() => true));
    await Promise.all(holds.map((hold) => hold.unlock()));
    await until("the waiters have theirs", () => waiting.every(({ grantedAt }) => grantedAt), {
      timeout: SOON,
    });
    await Promise.all(waiting.map(async ({ hold }) => (await hold).unlock()));
  };
  await Promise.all(parties.map(goOn));
  const members = parties.flatMap(({ ours, theirs }): Member[] => [ours, theirs]);
  expect(members.flatMap(({ events }) => events.filter(({ name }) => name === "lost"))).toEqual([]);
  master.resume();
  await untilInStep(master);
});
