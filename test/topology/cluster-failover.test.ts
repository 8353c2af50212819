/** A replica replaces a master while locks are held, awaited and worked under. */
import { beforeEach, describe, expect, test } from "vitest";
import type { Hold } from "../../src/index.js";
import {
  hardFailover,
  needSharded,
  politeFailover,
  type RedisServer,
  rejoin,
  replicaOf,
  untilReplicated,
} from "../support/index.js";
import { SINGLE } from "../support/place/kinds.js";
import {
  Crew,
  locksOn,
  type Member,
  SHARDED,
  type Sharded,
  SOON,
  untilListening,
  useReplicatedCluster,
  waitFor,
} from "./cluster-crew.js";
import { Load } from "./load.js";

const cluster = await useReplicatedCluster();

/** Locks of every kind on one master: some held and awaited, some worked under. */
class Scene {
  readonly crew = new Crew(cluster);
  readonly load = new Load();
  readonly holds: Hold[] = [];
  waiting: ReturnType<typeof waitFor>[] = [];
  kept: string[] = [];
  worked: string[] = [];
  /** What sections of both masters did to each other. */
  across: string[] = [];
  ours!: Member;
  theirs!: Member;

  async begin(master: RedisServer, shardedPubSub: Sharded): Promise<void> {
    const options = { shardedPubSub, watchdogTimeout: 12_000 };
    [this.ours, this.theirs] = await Promise.all([this.crew.join(options), this.crew.join(options)]);
    const kept = await locksOn(master, SINGLE);
    const worked = await locksOn(master, SINGLE);
    this.kept = kept.map(([, name]) => name);
    this.worked = worked.map(([, name]) => name);
    for (const [kind, name] of kept) this.holds.push(await kind.make([this.ours.client], name).lock());
    this.waiting = kept.map(([kind, name]) => waitFor(kind.rival.make([this.theirs.client], name)));
    await untilListening(cluster, this.kept, shardedPubSub);
    for (const [kind, name] of worked) this.load.man(kind, [this.ours.client, this.theirs.client], name);
    await Promise.all(this.worked.map((name) => this.load.goesOn(name, 3, SOON)));
  }

  /** All that goes on after a failover: work, renewals, and the holds, which are handed over. */
  async goesOn(): Promise<void> {
    await Promise.all(this.worked.map((name) => this.load.goesOn(name, 3, SOON)));
    this.across = this.load.violations();
    await Promise.all(this.kept.map((name) => this.ours.renews(name, 1, SOON)));
    expect(this.holds.map((hold) => hold.isHeld)).toEqual(SINGLE.map(() => true));
    expect(Math.max(...(await this.handOver()))).toBeLessThan(SOON);
    await this.load.stop();
    expect(this.load.strange).toEqual([]);
  }

  /** Gives the holds back one by one; returns how long each waiter then took. */
  async handOver(): Promise<number[]> {
    const times: number[] = [];
    for (const [i, hold] of this.holds.entries()) {
      const begun = performance.now();
      await hold.unlock();
      const waiting = this.waiting[i];
      await (await waiting?.hold)?.unlock();
      times.push((waiting?.grantedAt ?? Number.NaN) - begun);
    }
    return times;
  }

  told(name: "lost" | "error"): unknown[] {
    return [this.ours, this.theirs].flatMap(({ events }) => events.filter((event) => event.name === name));
  }
}

describe.each(SHARDED)("with shardedPubSub %s", (shardedPubSub) => {
  beforeEach((context) => needSharded(shardedPubSub, context));

  test("asked for: holds, waiters and tasks go on, and nothing at all is lost", async () => {
    const scene = new Scene();
    await using _ = scene.crew;
    const master = await cluster.masterFor("here");
    await scene.begin(master, shardedPubSub);
    expect((await politeFailover(cluster, "here")).before).toBe(master);
    await scene.goesOn();
    const { load } = scene;
    expect([load.violations(), load.losses]).toEqual([[], []]);
    expect([...scene.told("lost"), ...scene.told("error")]).toEqual([]);
    await scene.crew.close();
  });

  test("by SIGKILL: what the replica had is kept, losses are told, no two reign at once [F27]", async () => {
    const scene = new Scene();
    await using _ = scene.crew;
    const master = await cluster.masterFor("here");
    await scene.begin(master, shardedPubSub);
    await untilReplicated(master, await replicaOf(cluster, master));
    const within = scene.load.violations();
    const { before } = await hardFailover(cluster, "here");
    await scene.goesOn();
    expect([within, scene.load.violations()]).toEqual([[], scene.across]);
    // "lost" was told for each hold whose grant the replica did not have, and for no other.
    expect(scene.told("lost")).toHaveLength(scene.load.losses.length);
    await scene.crew.close();
    await rejoin(cluster, before);
  });
});
