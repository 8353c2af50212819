/**
 * None of the faults that this file injects loses a grant. Before a master dies, its replica has all of its data.
 * A server that restarts has its append-only file. test/faults/not-guaranteed produces faults that do lose
 * grants.
 */
import { setTimeout as pause } from "node:timers/promises";
import {
  type Fault as Armed,
  calmFailover,
  type FaultProxy,
  forcedFailover,
  type Matcher,
  moveSlot,
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  rejoin,
  replicaOf,
  until,
  untilInStep,
  untilReplicated,
} from "../support/index.js";
import type { Fleet } from "./fleet.js";
import type { Planned } from "./plan.js";
import type { Site, Topology } from "./sites.js";

export interface Scenery {
  readonly fleet: Fleet;
  /** Names of locks in use. */
  readonly locks: readonly string[];
}

/** Milliseconds for which a fault waits for a command to strike. */
const STRIKES_WITHIN = 2_000;
/** With this setting above the number of its replicas, a master refuses every write. */
const REFUSES = ["CONFIG", "SET", "min-replicas-to-write"] as const;

/**
 * Milliseconds: more than four node time-outs. A cluster node that stands for election again sooner counts the old
 * votes as new ones, and becomes a master that no other node accepts. A fault that would cause this is left out.
 */
const BETWEEN_ELECTIONS = 26_000;
const elected = new WeakMap<RedisServer, number>();

const isScript: Matcher = ([verb = ""]) => /^EVAL(SHA)?$/.test(verb);

function pick<T>(list: readonly T[], target: number): T {
  return list[Math.floor(target * list.length)] as T;
}

/** The proxies between a process and all servers, or a single one of them. */
function wayOf({ target, way }: Planned, { fleet }: Scenery): readonly FaultProxy[] {
  const { proxies } = pick(fleet.members, target).route;
  return way < 0.5 ? proxies : [pick(proxies, 2 * way - 1)];
}

async function masterOf({ target }: Planned, { fleet }: Scenery): Promise<RedisServer> {
  return pick(await fleet.site.masters(), target);
}

/**
 * Waits until one fault has struck, cancels all of them, and returns the one that struck; undefined if none does in
 * time.
 */
async function struck<T extends Armed>(faults: readonly T[]): Promise<T | undefined> {
  const late = new AbortController();
  const timeout = pause(STRIKES_WITHIN, undefined, { signal: late.signal }).catch(() => undefined);
  await Promise.race([timeout, ...faults.map(({ fired }) => fired)]);
  late.abort();
  for (const fault of faults) fault.cancel();
  return faults.find(({ hits }) => hits > 0);
}

/** What pauses or resumes, for as long as the fault lasts. */
async function stopped(what: { pause(): void; resume(): void }, ms: number): Promise<void> {
  what.pause();
  await pause(ms);
  what.resume();
}

async function onWay(planned: Planned, scenery: Scenery, harm: (proxy: FaultProxy) => void): Promise<void> {
  const proxies = wayOf(planned, scenery);
  proxies.forEach(harm);
  await pause(planned.ms);
  for (const proxy of proxies) proxy.restore();
}

async function tell(planned: Planned, scenery: Scenery, ...command: readonly string[]): Promise<void> {
  const [name = "", ...rest] = command;
  const master = await masterOf(planned, scenery);
  // A restarted server refuses commands while it loads its data.
  await until(`${command.join(" ")} is done`, () => master.call(name, ...rest));
}

/** Resolves when all servers consider each other healthy again. */
async function settled(site: Site): Promise<void> {
  if (site.sentinel) return site.sentinel.inStep();
  if (!site.cluster) return;
  const { nodes } = site.cluster;
  await until("the cluster is up, and all nodes agree on who has what", async () => {
    const infos = await Promise.all(nodes.map((node) => node.call("CLUSTER", "INFO")));
    const views = await Promise.all(nodes.map(viewOf));
    return infos.every((info) => /cluster_state:ok/.test(String(info))) && new Set(views).size === 1;
  });
  const masters = await site.cluster.masters();
  await Promise.all(nodes.filter((node) => !masters.includes(node)).map(untilInStep));
}

/** The cluster as one node sees it: each node, its master and its slots. */
async function viewOf(node: RedisServer): Promise<string> {
  const lines = String(await node.call("CLUSTER", "NODES"))
    .trim()
    .split("\n");
  const rows = lines.map((line) => {
    const [id, , flags = "", master, , , , , ...slots] = line.split(" ");
    return [id, flags.replace("myself,", ""), master, ...slots].join(" ");
  });
  return rows.sort().join("\n");
}

/**
 * Stops all writes on the master and waits until the replica has its data. (CLIENT PAUSE would also stop the sentinels'
 * publishing, which shares a connection with their commands.)
 */
async function quiesce(master: RedisServer, replica: RedisServer): Promise<void> {
  await master.call(...REFUSES, 9);
  await untilReplicated(master, replica);
}

async function failOver(
  planned: Planned,
  { fleet: { site }, locks }: Scenery,
  kills: boolean,
): Promise<void> {
  const { cluster } = site;
  if (cluster) {
    const key = pick(locks, planned.target);
    const before = await cluster.masterFor(key);
    const replica = await replicaOf(cluster, before);
    if (performance.now() - (elected.get(replica) ?? Number.NEGATIVE_INFINITY) < BETWEEN_ELECTIONS) return;
    elected.set(replica, performance.now());
    if (!kills) {
      await calmFailover(cluster, key);
      return settled(site);
    }
    await quiesce(before, replica);
    await before.kill();
    await forcedFailover(cluster, key, { before, replica });
    await rejoin(cluster, before);
    return settled(site);
  }
  const sentinel = site.sentinel as RedisSentinel;
  const before = await sentinel.master();
  const [replica] = (await sentinel.replicas()) as [RedisServer];
  await quiesce(before, replica);
  if (kills) await before.kill();
  await sentinel.failover();
  if (kills) return sentinel.revive(before);
  await sentinel.inStep();
  await before.call(...REFUSES, 0);
}

/** One or two of the five masters of a RedLock are killed and restart with their data, or are only paused. */
async function leave(planned: Planned, { fleet: { site } }: Scenery): Promise<void> {
  const masters = await site.masters();
  const first = pick(masters, planned.target);
  const second = pick(
    masters.filter((master) => master !== first),
    (2 * planned.way) % 1,
  );
  const gone = planned.target < 1 / 3 ? [first] : [first, second];
  const dies = planned.way < 0.5;
  await Promise.all(gone.map(async (master) => (dies ? master.kill() : master.pause())));
  await pause(planned.ms);
  await Promise.all(gone.map(async (master) => (dies ? master.restart() : master.resume())));
}

/** What a fault strikes. Faults of one lane follow each other; faults of two lanes may overlap. */
export type Lane = "clients" | "servers";

export interface Fault {
  readonly name: string;
  readonly lane: Lane;
  /** Shortest and longest duration in milliseconds; absent for a fault without duration. */
  readonly ms?: readonly [least: number, most: number];
  /** Default all. */
  readonly topologies?: readonly Topology[];
  /** How often it is drawn, compared with the others. Default 1. */
  readonly weight?: number;
  /** Resolves when the fault is over. */
  inject(planned: Planned, scenery: Scenery): Promise<void>;
}

const clients = (name: string, inject: Fault["inject"], more: Pick<Fault, "ms" | "weight"> = {}): Fault => ({
  name,
  lane: "clients",
  inject,
  ...more,
});

const servers = (
  name: string,
  inject: Fault["inject"],
  more: Pick<Fault, "ms" | "weight" | "topologies"> = {},
): Fault => ({ name, lane: "servers", inject, ...more });

const BRIEF = { ms: [50, 1_500] } as const;
const LONGER = { ms: [50, 2_500] } as const;
const REPLICATED = { topologies: ["sentinel", "cluster"], weight: 2 } as const;

/** The rows of docs/faults.md under which mutual exclusion still holds. */
export const FAULTS: readonly Fault[] = [
  clients("stall", (planned, scenery) => onWay(planned, scenery, (proxy) => proxy.stall()), BRIEF),
  clients("half-open", (planned, scenery) => onWay(planned, scenery, (proxy) => proxy.blackhole()), BRIEF),
  clients("refused", (planned, scenery) => onWay(planned, scenery, (proxy) => proxy.refuse()), BRIEF),
  clients("cut", async (planned, scenery) => {
    for (const proxy of wayOf(planned, scenery)) proxy.cut();
  }),
  clients(
    "lost reply",
    async (planned, scenery) => {
      await struck(wayOf(planned, scenery).map((proxy) => proxy.cutReplyOf(isScript)));
    },
    { weight: 3 },
  ),
  clients(
    "lost request",
    async (planned, scenery) => {
      await struck(wayOf(planned, scenery).map((proxy) => proxy.dropRequest(isScript)));
    },
    { weight: 3 },
  ),
  clients(
    "late request",
    async (planned, scenery) => {
      const held = wayOf(planned, scenery).map((proxy) => proxy.holdRequest(isScript));
      if (!(await struck(held))) return;
      await pause(planned.ms);
      // The server may have been replaced meanwhile: then it refuses the late request, or the request is lost.
      await Promise.allSettled(held.filter(({ hits }) => hits > 0).map((request) => request.deliver()));
    },
    BRIEF,
  ),
  clients(
    "SIGSTOP of a process",
    ({ target, ms }, { fleet }) => stopped(pick(fleet.members, target).worker, ms),
    { ...LONGER, weight: 2 },
  ),
  clients("SIGKILL of a process", async ({ target }, { fleet }) => {
    const mortal = fleet.members.filter(({ crew }) => crew.mortal);
    if (mortal.length > 0) await fleet.replace(pick(mortal, target));
  }),
  servers("CLIENT KILL normal", (planned, scenery) =>
    tell(planned, scenery, "CLIENT", "KILL", "TYPE", "normal"),
  ),
  servers(
    "CLIENT KILL pubsub",
    (planned, scenery) => tell(planned, scenery, "CLIENT", "KILL", "TYPE", "pubsub"),
    { weight: 2 },
  ),
  servers(
    "CLIENT PAUSE",
    async (planned, scenery) => {
      await tell(planned, scenery, "CLIENT", "PAUSE", String(planned.ms), "ALL");
      await pause(planned.ms);
    },
    { ms: [50, 1_000] },
  ),
  servers("SCRIPT FLUSH", (planned, scenery) => tell(planned, scenery, "SCRIPT", "FLUSH")),
  servers(
    "SIGSTOP of a server",
    async (planned, scenery) => {
      await stopped(await masterOf(planned, scenery), planned.ms);
      await settled(scenery.fleet.site);
    },
    BRIEF,
  ),
  servers("restart of a server", async (planned, scenery) => {
    await (await masterOf(planned, scenery)).restart();
    await settled(scenery.fleet.site);
  }),
  servers("failover", (planned, scenery) => failOver(planned, scenery, false), REPLICATED),
  servers("death of a master", (planned, scenery) => failOver(planned, scenery, true), REPLICATED),
  servers(
    "slot moved",
    async ({ target }, { fleet: { site }, locks }) => {
      await moveSlot(site.cluster as RedisCluster, pick(locks, target));
      await settled(site);
    },
    { topologies: ["cluster"], weight: 4 },
  ),
  servers("masters away", leave, { ...LONGER, topologies: ["redlock"], weight: 4 }),
];
