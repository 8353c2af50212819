/** Plans which fault comes when: at random, and always the same for the same seed. Pure. */
import { Random } from "../support/random.js";
import { TOPOLOGIES, type Topology } from "./sites.js";

/** What a fault strikes. Faults of one lane follow each other; faults of two lanes may overlap. */
export type Lane = "clients" | "servers";

export interface FaultKind {
  readonly name: string;
  /** Its group in the report: the connections, the processes, the servers, or a change of the master. */
  readonly group: "network" | "process" | "server" | "master";
  readonly lane: Lane;
  /** Shortest and longest duration in milliseconds; absent for a fault without duration. */
  readonly ms?: readonly [least: number, most: number];
  /** Default all. */
  readonly topologies?: readonly Topology[];
  /** How often it is drawn, compared with the others. Default 1. */
  readonly weight?: number;
}

const REPLICATED: readonly Topology[] = ["sentinel", "cluster"];

/**
 * The rows of docs/faults.md under which mutual exclusion still holds, each with the name of its injection in
 * faults.ts.
 */
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

/** Longest pause between two faults of a lane, in milliseconds. */
const REST: Record<Lane, number> = { clients: 700, servers: 3_000 };

/** A fault of the plan. */
export interface Planned {
  /** Milliseconds from the start of its round. It starts later if the fault before it takes longer. */
  readonly at: number;
  readonly lane: Lane;
  readonly name: string;
  /** Milliseconds; 0 for a fault without duration. */
  readonly ms: number;
  /** Picks the process or server to strike: at least 0, below 1. */
  readonly target: number;
  /** Picks one of several variants of the fault: at least 0, below 1. */
  readonly way: number;
}

/** The faults of a round of `ms` milliseconds, in the order of their start. */
export function planRound(seed: number, round: number, topology: Topology, ms: number): Planned[] {
  const random = new Random(seed + 0x9e3779b9 * round);
  const lanes = (["clients", "servers"] as const).flatMap((lane) => planLane(random, lane, topology, ms));
  return lanes.sort((a, b) => a.at - b.at);
}

function planLane(random: Random, lane: Lane, topology: Topology, ms: number): Planned[] {
  const choice = FAULTS.filter(
    (kind) => kind.lane === lane && (kind.topologies ?? TOPOLOGIES).includes(topology),
  ).flatMap((kind) => new Array<FaultKind>(kind.weight ?? 1).fill(kind));
  const planned: Planned[] = [];
  let at = 0;
  for (;;) {
    at += Math.round(random.next() * REST[lane]);
    const { name, ms: [least, most] = [0, 0] } = random.pick(choice);
    const lasts = Math.round(least + random.next() * (most - least));
    const [target, way] = [random.next(), random.next()];
    if (at + lasts > ms) return planned;
    planned.push({ at, lane, name, ms: lasts, target, way });
    at += lasts;
  }
}
