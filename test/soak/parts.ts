/** What the processes of the soak do, kind by kind, and what they may ask of a lock that is free. */
import type { Limits } from "../exclusion/checker.js";
import type { CrowdKind, CrowdPart } from "../exclusion/crowd.js";
import type { Part } from "../exclusion/fleet.js";
import type { WorkerOptions } from "../support/index.js";
import type { Topology } from "./plan.js";

/** Milliseconds, as the clients are told. */
const POLL_CAP = 1_000;
const WATCHDOG = 3_000;
const LEASE = [1_500, 3_000];
/** A RedLock cannot be granted for a lease that is over before a majority has answered, as slow as that may be here. */
const SHORT = [600, 900];
const SAFE = 600;
const OPTIONS = { watchdogTimeout: WATCHDOG, pollCap: POLL_CAP };

/** Milliseconds that a busy machine may add wherever a time is measured. */
const MARGIN = 4_000;
/**
 * Milliseconds for which a waiter may sleep though it could be served: a waiter tries again when the lease ends or after
 * `pollCap`, and at once after a reconnect (docs/guarantees.md).
 */
export const BOUND: number = POLL_CAP + MARGIN;
/** One who died in a line is skipped after three times `pollCap`, by whoever polls next. */
const ABSENCE = 4 * POLL_CAP;
/** Milliseconds after which those who wait would wait for ever: of a MultiLock no more than that is promised. */
const DEAD_LOCK = 30_000;

/** After so many milliseconds without faults everybody who waits for what is free must have been served. */
export const QUIET: number = ABSENCE + BOUND;

export const LIMITS: Limits = { lease: WATCHDOG, margin: MARGIN, patience: POLL_CAP, absence: ABSENCE };

/** A MultiLock waits in one line at a time, while its other members may be free. */
export function limitsOf(kind: string): Limits {
  return kind === "multi" ? { ...LIMITS, patience: DEAD_LOCK } : LIMITS;
}

const LOCKS = ["lock", "fair", "fenced", "readwrite", "unranked", "multi"] as const;
const CROWDS: readonly CrowdKind[] = ["semaphore", "permits", "latch"];

/** The kinds that can be on it. */
export function kindsOn(topology: Topology): readonly string[] {
  return topology === "redlock" ? ["red"] : [...LOCKS, ...CROWDS];
}

/** Tasks on locks; undefined if no kind of lock is wanted. */
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

/** Those on semaphores and latches. */
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

/** The names that are fought for: what moves a slot moves one of theirs. */
export function hotNames(kinds: readonly string[]): string[] {
  return kinds.flatMap((kind) => {
    if (kind === "latch") return [];
    return [0, 1].map((i) =>
      (CROWDS as readonly string[]).includes(kind) ? `${kind}-${i}` : `${kind}-hot-${i}`,
    );
  });
}
