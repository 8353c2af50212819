/**
 * The parts of a soak: the processes of each kind, their tasks, and the time within which a waiter must get a free
 * lock.
 */
import type { Limits } from "../exclusion/checker.js";
import type { CrowdKind, CrowdPart } from "../exclusion/crowd.js";
import type { Part } from "../exclusion/fleet.js";
import type { WorkerOptions } from "../support/index.js";
import type { Topology } from "./plan.js";

/** Options of the clients, in milliseconds. */
const POLL_CAP = 1_000;
const WATCHDOG = 3_000;
const LEASE = [1_500, 3_000];
/** Short leases must outlast the answers of a majority on a slow machine: otherwise no RedLock would be granted. */
const SHORT = [600, 900];
const SAFE = 600;
const OPTIONS = { watchdogTimeout: WATCHDOG, pollCap: POLL_CAP };

/** Milliseconds that a busy machine may add to any measured time. */
const MARGIN = 4_000;
/**
 * Milliseconds for which a waiter may sleep although it could be served: a waiter tries again when the lease ends or
 * after `pollCap`, and at once after a reconnect (docs/guarantees.md).
 */
export const BOUND: number = POLL_CAP + MARGIN;
/** The next poll of any waiter removes a dead one from the line after three times `pollCap`. */
const ABSENCE = 4 * POLL_CAP;
/** Milliseconds after which waiters count as stuck for ever. For a MultiLock nothing shorter is promised. */
const DEAD_LOCK = 30_000;

/** After this many milliseconds without faults every waiter of a free lock must have been served. */
export const QUIET: number = ABSENCE + BOUND;

export const LIMITS: Limits = { lease: WATCHDOG, margin: MARGIN, patience: POLL_CAP, absence: ABSENCE };

/** The limits of a kind. A MultiLock waits in one line at a time while its other members may be free. */
export function limitsOf(kind: string): Limits {
  return kind === "multi" ? { ...LIMITS, patience: DEAD_LOCK } : LIMITS;
}

const LOCKS = ["lock", "fair", "fenced", "readwrite", "unranked", "multi"] as const;
const CROWDS: readonly CrowdKind[] = ["semaphore", "permits", "latch"];

/** The kinds that the topology supports. */
export function kindsOn(topology: Topology): readonly string[] {
  return topology === "redlock" ? ["red"] : [...LOCKS, ...CROWDS];
}

/** Tasks on locks; undefined if the kinds include no lock. */
export function lockPart(kinds: readonly string[], worker: WorkerOptions): Part | undefined {
  const locks = kinds.filter((kind) => !(CROWDS as readonly string[]).includes(kind));
  if (locks.length === 0) return undefined;
  return {
    processes: 3,
    worker,
    config: {
      kinds: locks,
      coolTasks: 6,
      cool: 8,
      hotTasks: 2 * locks.length,
      hot: 2,
      manner: "wild",
      stormy: true,
      lease: LEASE,
      short: SHORT,
      safe: SAFE,
      options: OPTIONS,
    },
    limits: LIMITS,
  };
}

const COMMON = { locks: 3, processes: 2, lossy: Number.POSITIVE_INFINITY };
const PERMITS = { permits: 4, patience: BOUND, margin: 50 };
const TASKS = { tasks: 8, stay: 3, fuse: 30, patience: DEAD_LOCK, options: OPTIONS };

/** Tasks on semaphores and latches. */
export function crowdParts(kinds: readonly string[]): CrowdPart[] {
  const parts: CrowdPart[] = [
    {
      ...COMMON,
      kind: "semaphore",
      limits: { ...PERMITS, largest: 3, lease: 0 },
      config: { ...TASKS, most: 3 },
    },
    {
      ...COMMON,
      kind: "permits",
      limits: { ...PERMITS, largest: 1, lease: WATCHDOG },
      config: { ...TASKS, lease: LEASE },
    },
    {
      ...COMMON,
      kind: "latch",
      locks: 0,
      limits: { permits: 0, largest: 0, lease: 0, patience: DEAD_LOCK, margin: 50 },
      config: { tasks: 0, options: OPTIONS },
    },
  ];
  return parts.filter(({ kind }) => kinds.includes(kind));
}

/** Names under contention. A fault that moves a slot picks the slot of one of them. */
export function hotNames(kinds: readonly string[]): string[] {
  return kinds.flatMap((kind) => {
    if (kind === "latch") return [];
    return [0, 1].map((i) =>
      (CROWDS as readonly string[]).includes(kind) ? `${kind}-${i}` : `${kind}-hot-${i}`,
    );
  });
}
