/** The steps of a simulation, which one seed decides. A schedule without some of its steps is a schedule, too. */
import { Random } from "../support/random.js";

export const KINDS = ["lock", "fair", "fenced", "readwrite", "semaphore", "permits", "multi", "red"] as const;

export type Kind = (typeof KINDS)[number];

/** Milliseconds that bytes travel one way: `least` to `most`, and up to `latest` for a share `late` of them. */
export interface Weather {
  readonly least: number;
  readonly most: number;
  readonly late: number;
  readonly latest: number;
}

/** A call that takes something, keeps it for a while and gives it back. All times are milliseconds. */
export interface Take {
  readonly do: "take";
  readonly at: number;
  readonly client: number;
  /** The number of an owner of this client, whose calls nest; absent: a bare call. */
  readonly owner?: number;
  /** For a read-write lock: whether it reads. */
  readonly shared?: boolean;
  /** For a MultiLock: its locks. */
  readonly members?: readonly number[];
  /** How long it may wait; 0: one try; absent: for ever. */
  readonly wait?: number;
  readonly lease?: number;
  readonly keep: number;
  /** The lease by which the hold is extended: after half of its time, or, if it is even, right before it is given back. */
  readonly extend?: number;
  /** The signal of the call aborts after this time. */
  readonly abort?: number;
  /** Whether the hold's signal is watched, too. */
  readonly watched?: boolean;
}

export type Fault =
  /** A connection is dropped: the first or second one of the client, or both. */
  | { readonly do: "drop"; readonly at: number; readonly client: number; readonly which: number }
  /** Nothing passes between client and server. */
  | { readonly do: "cut"; readonly at: number; readonly client: number; readonly for: number }
  /** The event loop of a client stands still. */
  | { readonly do: "stall"; readonly at: number; readonly client: number; readonly for: number }
  /** A client goes silent for ever. */
  | { readonly do: "crash"; readonly at: number; readonly client: number }
  /** The server goes and comes back, with its data or without. */
  | { readonly do: "restart"; readonly at: number; readonly for: number; readonly keeps: boolean }
  /** A client takes the lock away by force, or another program deletes it. */
  | {
      readonly do: "take away";
      readonly at: number;
      readonly client: number;
      readonly by: "force" | "deletion";
    }
  /** A replica takes over that lacks the latest writes. */
  | { readonly do: "failover"; readonly at: number; readonly for: number; readonly lag: number };

export type Step = Take | Fault;

export interface Schedule {
  readonly kind: Kind;
  readonly seed: number;
  /** The rate of each client's clock. */
  readonly rates: readonly number[];
  readonly weather: Weather;
  readonly watchdogTimeout: number;
  readonly pollCap: number;
  readonly commandTimeout: number;
  /** The permits of a semaphore. */
  readonly permits: number;
  readonly steps: readonly Step[];
}

/** With faults or without. */
const WEATHERS: readonly Weather[] = [
  { least: 0.1, most: 0.4, late: 0, latest: 0 },
  { least: 0.2, most: 3, late: 0.02, latest: 80 },
  { least: 1, most: 30, late: 0.05, latest: 400 },
];

/** By how much the rate of a clock may be wrong: half of the default drift. */
const DRIFT = 0.005;

export function makeSchedule(kind: Kind, seed: number): Schedule {
  const random = new Random(seed);
  const clients = 2 + random.below(3);
  const span = random.pick([150, 600, 2_500]);
  const watchdogTimeout = random.pick([600, 3_000, 30_000]);
  const steps: Step[] = [];
  for (let i = 5 + random.below(10); i > 0; i--) steps.push(makeTake(random, kind, clients, span));
  // Not for semaphores: a lost number would have to be set again, by a program that knows it.
  const isLossy = kind !== "semaphore" && kind !== "permits" && random.chance(0.1);
  for (let i = random.below(5); i > 0; i--) steps.push(makeFault(random, clients, span, isLossy));
  // From a sequence of its own, so that the other steps of a seed stay as they are.
  const thief = new Random(seed ^ 0x165667b1);
  if (kind !== "semaphore" && kind !== "permits" && thief.chance(0.15))
    steps.push({
      do: "take away",
      at: thief.below(span),
      client: thief.below(clients),
      by: thief.pick(["force", "deletion"]),
    });
  return {
    kind,
    seed,
    rates: Array.from({ length: clients }, () => 1 + (random.next() * 2 - 1) * DRIFT),
    weather: random.pick(WEATHERS),
    watchdogTimeout,
    pollCap: random.pick([200, 1_000, 3_000]),
    commandTimeout: random.pick([150, 1_000, 3_000]),
    permits: 1 + random.below(2),
    steps: steps.sort((a, b) => a.at - b.at),
  };
}

function makeTake(random: Random, kind: Kind, clients: number, span: number): Take {
  const isLock = kind !== "semaphore" && kind !== "permits";
  const wait = random.pick([undefined, undefined, 0, random.below(2 * span)]);
  return {
    do: "take",
    at: random.below(span),
    client: random.below(clients),
    ...(isLock && random.chance(0.4) ? { owner: random.below(2) } : {}),
    ...(kind === "readwrite" && random.chance(0.6) ? { shared: true } : {}),
    ...(kind === "multi"
      ? {
          members: random.pick([
            [0, 1],
            [1, 0],
            [1, 2],
            [2, 0],
            [0, 1, 2],
          ]),
        }
      : {}),
    ...(wait === undefined ? {} : { wait }),
    ...(kind !== "semaphore" && random.chance(0.4) ? { lease: 20 + random.below(2 * span) } : {}),
    keep: random.chance(0.3) ? 0 : random.below(span),
    ...(isLock && random.chance(0.15) ? { extend: 20 + random.below(2 * span) } : {}),
    ...(random.chance(0.2) ? { abort: random.below(span) } : {}),
    ...(random.chance(0.3) ? { watched: true } : {}),
  };
}

function makeFault(random: Random, clients: number, span: number, isLossy: boolean): Fault {
  const at = random.below(span);
  const client = random.below(clients);
  const long = () => Math.ceil(random.next() ** 2 * 4 * span);
  if (isLossy && random.chance(0.5)) {
    return random.chance(0.5)
      ? { do: "restart", at, for: 20 + random.below(span), keeps: false }
      : { do: "failover", at, for: 20 + random.below(span), lag: random.below(span) };
  }
  const pick = random.next();
  if (pick < 0.4) return { do: "drop", at, client, which: 1 + random.below(3) };
  if (pick < 0.6) return { do: "cut", at, client, for: long() };
  if (pick < 0.8) return { do: "stall", at, client, for: long() };
  if (pick < 0.9) return { do: "crash", at, client };
  return { do: "restart", at, for: 20 + random.below(span), keeps: true };
}
