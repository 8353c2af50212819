/** Which faults come when: random, and the same for the same seed. Pure. */
import { randomFrom } from "../exclusion/random.mjs";

export const TOPOLOGIES = ["single", "sentinel", "cluster", "redlock"] as const;
export type Topology = (typeof TOPOLOGIES)[number];

/** What a fault strikes. Faults of one lane come one after the other; those of two meet. */
export type Lane = "clients" | "servers";

export interface FaultKind {
  readonly name: string;
  /** What it is drawn with: the way to the servers, the processes, the servers, or who is master. */
  readonly group: "network" | "process" | "server" | "master";
  readonly lane: Lane;
  /** Milliseconds, from the least to the most; none for what happens in an instant. */
  readonly ms?: readonly [least: number, most: number];
  /** Default all. */
  readonly topologies?: readonly Topology[];
  /** More is more often. Default 1. */
  readonly weight?: number;
}

const REPLICATED: readonly Topology[] = ["sentinel", "cluster"];

/** The rows of docs/faults.md that leave the exclusion as it is, each with the way in which it is injected in faults.ts. */
export const FAULTS: readonly FaultKind[] = [
  { name: "lost reply", group: "network", lane: "clients", weight: 3 },
  { name: "lost request", group: "network", lane: "clients", weight: 3 },
  { name: "late request", group: "network", lane: "clients", ms: [50, 1_500] },
  { name: "cut", group: "network", lane: "clients" },
  { name: "stall", group: "network", lane: "clients", ms: [50, 1_500] },
  { name: "half-open", group: "network", lane: "clients", ms: [50, 1_500] },
  { name: "refused", group: "network", lane: "clients", ms: [50, 1_500] },
  { name: "SIGSTOP of a process", group: "process", lane: "clients", ms: [50, 2_500], weight: 2 },
  { name: "SIGKILL of a process", group: "process", lane: "clients" },
  { name: "CLIENT KILL normal", group: "server", lane: "servers" },
  { name: "CLIENT KILL pubsub", group: "server", lane: "servers", weight: 2 },
  { name: "CLIENT PAUSE", group: "server", lane: "servers", ms: [50, 1_000] },
  { name: "SCRIPT FLUSH", group: "server", lane: "servers" },
  { name: "SIGSTOP of a server", group: "server", lane: "servers", ms: [50, 1_500] },
  { name: "restart of a server", group: "server", lane: "servers" },
  { name: "failover", group: "master", lane: "servers", topologies: REPLICATED, weight: 2 },
  { name: "death of a master", group: "master", lane: "servers", topologies: REPLICATED, weight: 2 },
  { name: "slot moved", group: "master", lane: "servers", topologies: ["cluster"], weight: 4 },
  {
    name: "masters away",
    group: "master",
    lane: "servers",
    ms: [50, 2_500],
    topologies: ["redlock"],
    weight: 4,
  },
];

/** Milliseconds of rest between two faults of a lane, at most. */
const REST: Record<Lane, number> = { clients: 700, servers: 3_000 };

/** One fault to come. */
export interface Planned {
  /** Milliseconds from the start of its round. It comes later if the one before it takes longer. */
  readonly at: number;
  readonly lane: Lane;
  readonly name: string;
  /** Milliseconds; 0 for what happens in an instant. */
  readonly ms: number;
  /** Which of those that it can strike: at least 0, below 1. */
  readonly target: number;
  /** In which way, where there are several: at least 0, below 1. */
  readonly way: number;
}

/** The faults of one round of so many milliseconds, in their order. */
export function planRound(seed: number, round: number, topology: Topology, ms: number): Planned[] {
  const random = randomFrom(seed + 0x9e3779b9 * round);
  const lanes = (["clients", "servers"] as const).flatMap((lane) => planLane(random, lane, topology, ms));
  return lanes.sort((a, b) => a.at - b.at);
}

function planLane(random: () => number, lane: Lane, topology: Topology, ms: number): Planned[] {
  const choice = FAULTS.filter(
    (kind) => kind.lane === lane && (kind.topologies ?? TOPOLOGIES).includes(topology),
  ).flatMap((kind) => new Array<FaultKind>(kind.weight ?? 1).fill(kind));
  const planned: Planned[] = [];
  let at = 0;
  for (;;) {
    at += Math.round(random() * REST[lane]);
    const { name, ms: [least, most] = [0, 0] } = choice[Math.floor(random() * choice.length)] as FaultKind;
    const lasts = Math.round(least + random() * (most - least));
    const [target, way] = [random(), random()];
    if (at + lasts > ms) return planned;
    planned.push({ at, lane, name, ms: lasts, target, way });
    at += lasts;
  }
}
