/** The steps of calm schedules, as data. */
import { Random } from "../../support/random.js";

/** Who calls: nobody in particular, an owner by option or by its scope, or the owner of a hold. */
export interface By {
  readonly as: "bare" | "owner" | "scope" | "hold";
  readonly n: number;
}

export interface CalmStep {
  readonly do: string;
  readonly client: number;
  /** Which hold or waiting call it is about, or which side: a place in the list of these. */
  readonly place: number;
  readonly by: By;
  /** Milliseconds; absent: for ever, or kept by the watchdog. */
  readonly wait?: number | undefined;
  readonly lease?: number | undefined;
  /** How long time passes, or what a lease is set to. */
  readonly ms: number;
  /** Whether it may be about a hold that has ended. */
  readonly any?: boolean | undefined;
  /** The connections are lost after the request or the reply of the call's first command, which is sent again. */
  readonly lost?: "request" | "reply" | undefined;
  /** The call is given up while its first command is on its way. */
  readonly hasty?: boolean | undefined;
}

export const CALM_KINDS = ["calm-lock", "calm-fair", "calm-fenced", "calm-readwrite"] as const;

export type CalmKind = (typeof CALM_KINDS)[number];

export interface CalmSchedule {
  readonly kind: CalmKind;
  readonly seed: number;
  readonly steps: readonly CalmStep[];
}

export const CLIENTS = 2;
/** The most things of one kind that a step can choose between. */
const PLACES = 8;

/** How often each step comes. */
const WEIGHTS = {
  ...{ lock: 60, tryLock: 40, unlock: 30, giveBack: 60, extend: 20, force: 10, vanish: 6 },
  ...{ abort: 16, close: 4, pass: 50 },
};

/** Milliseconds that pass, and leases that are set. */
const PASSED = [500, 3_000, 8_000, 14_000, 35_000, 70_000];
const SET = [7_000, 30_000, 100_000];

export function isCalm(kind: string): kind is CalmKind {
  return (CALM_KINDS as readonly string[]).includes(kind);
}

export function makeCalmSchedule(kind: CalmKind, seed: number): CalmSchedule {
  const random = new Random(seed);
  const weights = { ...WEIGHTS, dies: kind === "calm-readwrite" ? 12 : 0 };
  const names = Object.entries(weights).flatMap(([name, weight]) => Array<string>(weight).fill(name));
  return {
    kind,
    seed,
    steps: Array.from({ length: 8 + random.below(18) }, () => make(random, random.pick(names))),
  };
}

function make(random: Random, name: string): CalmStep {
  const byHold = random.chance(name === "unlock" ? 0.5 : 0.3);
  const as = byHold ? "hold" : random.pick(["bare", "owner", "scope"] as const);
  const by: By = { as, n: random.below(byHold ? PLACES : 2) };
  return {
    ...{ do: name, client: random.below(CLIENTS), by, place: random.below(PLACES) },
    ms: random.pick(name === "pass" ? PASSED : SET),
    wait: random.pick([undefined, undefined, 0, 5_000, 20_000, 60_000]),
    lease: random.pick([undefined, 90_000, 50_000, 25_000, 12_000]),
    any: random.chance(0.2) || undefined,
    lost: random.chance(0.12) ? random.pick(["request", "reply"] as const) : undefined,
    hasty: random.chance(0.06) || undefined,
  };
}
