/** Plans which fault comes when: at random, and always the same for the same seed. Pure. */
import { Random } from "../support/random.js";
import { FAULTS, type Fault, type Lane } from "./faults.js";
import { TOPOLOGIES, type Topology } from "./sites.js";

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
  ).flatMap((kind) => new Array<Fault>(kind.weight ?? 1).fill(kind));
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
