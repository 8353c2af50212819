/** The options of a client: their defaults and their limits. */
import { checkInteger, checkName, checkOneOf, checkOptions, checkType } from "./base/arguments.js";
import { type Clock, systemClock } from "./base/clock.js";
import type { LossReason } from "./base/errors.js";
import { renewalInterval, untilDeadline } from "./base/lease.js";

/** Options of a client, for all its locks. An option that is absent or undefined has its default. */
export interface LockClientOptions {
  /**
   * Milliseconds: the lease of holds that are taken without one, renewed every third of it. Default 30 000, at least
   * 300.
   */
  watchdogTimeout?: number | undefined;
  /** Put before every name, with a colon between them (`prefix:name`), to share a server. Default none. */
  prefix?: string | undefined;
  /** Milliseconds: the longest sleep of a waiter, should every wake-up be lost. Default 3 000. */
  pollCap?: number | undefined;
  /** Milliseconds: Redisson's grace per queued fair waiter; keep it equal in a mixed fleet. Default 300 000. */
  fairWaitTimeout?: number | undefined;
  /** Replicas that must acknowledge a grant; with fewer the grant is undone and the call rejects. Default 0. */
  replicas?: number | undefined;
  /** Milliseconds to wait for these replicas, on top of `commandTimeout`. Default 1 000. */
  replicasTimeout?: number | undefined;
  /** Whether releases on a Cluster are announced by SPUBLISH: as Redisson decides it ("auto", the default), or forced. */
  shardedPubSub?: "auto" | boolean | undefined;
  /**
   * Milliseconds: the bound on one server call. After it the outcome is unknown, and the client reconciles it. Default
   * 3 000.
   */
  commandTimeout?: number | undefined;
  /**
   * The share of a lease taken off the local deadline, plus 2 ms. Default 0.01. At least 0, and a little below 2/3: a
   * hold is renewed after a third of its lease, which must come before its local deadline.
   */
  drift?: number | undefined;
  /** A name of this process for people, of at most 200 characters. Default `host:pid`. */
  label?: string | undefined;
  /**
   * Whether the client tells others, by a key of its own, what it holds and waits for when that is older than a second.
   * Default true. Without the permission for it the client does not tell, and the event `error` says so once.
   */
  presence?: boolean | undefined;
  /** Milliseconds after which a hold causes the event `longHold`. Default off; at least 1. */
  warnAfter?: number | undefined;
  /**
   * The owner of a call that names none. "context", the default: the scope or run around it in the async context, as far
   * as that follows the work. "explicit": only `{ owner }` re-enters. `scope` and `run` then hand their function the owner
   * (a run its Hold) to pass on.
   */
  reentrancy?: "context" | "explicit" | undefined;
}

/** Options of {@link LockClient.close}. */
export interface CloseOptions {
  /** Milliseconds that live holds get to end by themselves. Default 5 000; 0 ends them at once. */
  timeout?: number | undefined;
}

/** What `holdfast/testing` and tests of the library itself may replace. Not part of the public contract. */
export const INTERNALS: unique symbol = Symbol.for("holdfast.internals") as never;

export interface Internals {
  readonly clock: Clock;
  readonly random: () => number;
  /** The clock is the server's too, and exact: a waiter tries right at the end of a TTL. */
  readonly exactTimers: boolean;
  /** Called when the client is made, with a function that ends all its holds and permits for a reason. */
  readonly onMade: (loseAll: (reason: LossReason) => void) => void;
}

type Given = Required<{ [K in keyof LockClientOptions]: NonNullable<LockClientOptions[K]> }>;

export type CheckedOptions = Given & Internals;

type Check = (value: unknown, name: string) => unknown;

const atLeast =
  (least: number): Check =>
  (value, name) =>
    checkInteger(value, name, least);

const oneOf =
  (...allowed: readonly unknown[]): Check =>
  (value, name) =>
    checkOneOf(value, name, ...allowed);

const LONGEST_LABEL = 200;

/** The default and the check of each option. */
const OPTIONS: { readonly [K in keyof Given]: readonly [Given[K], Check] } = {
  watchdogTimeout: [30_000, atLeast(300)],
  prefix: ["", checkName],
  pollCap: [3_000, atLeast(1)],
  fairWaitTimeout: [300_000, atLeast(1)],
  replicas: [0, atLeast(0)],
  replicasTimeout: [1_000, atLeast(1)],
  shardedPubSub: ["auto", oneOf("auto", true, false)],
  commandTimeout: [3_000, atLeast(1)],
  drift: [0.01, (value) => value], // Its bound depends on another option.
  label: ["", checkLabel],
  presence: [true, oneOf(true, false)],
  warnAfter: [0, atLeast(1)],
  reentrancy: ["context", oneOf("context", "explicit")],
};

const INTERNAL_DEFAULTS: Internals = {
  clock: systemClock,
  random: Math.random,
  exactTimers: false,
  onMade: () => {},
};

/** `where`: the call that got the options. */
export function checkClientOptions(value: unknown, where = "LockClient"): CheckedOptions {
  const given = checkOptions(value, Object.keys(OPTIONS), where);
  const internals = (value as { [INTERNALS]?: Partial<Internals> } | undefined)?.[INTERNALS];
  const checked: Record<string, unknown> = { ...INTERNAL_DEFAULTS, ...internals };
  for (const [name, [byDefault, check]] of Object.entries(OPTIONS)) {
    const setting = given[name];
    checked[name] = setting === undefined ? byDefault : check(setting, name);
  }
  checkDrift(checked as unknown as CheckedOptions);
  return checked as unknown as CheckedOptions;
}

/** Refuses a drift with which each hold that is renewed would be lost before its first renewal. */
function checkDrift({ drift, watchdogTimeout }: CheckedOptions): void {
  checkType(drift, "drift", "number");
  const bound = untilDeadline(watchdogTimeout, 0, renewalInterval(watchdogTimeout)) / watchdogTimeout;
  if (drift >= 0 && drift < bound) return;
  throw new RangeError(
    `drift must be at least 0 and below ${Math.floor(bound * 1_000) / 1_000}, or a hold of ${watchdogTimeout} ms ends ` +
      `before its first renewal; it is ${drift}`,
  );
}

function checkLabel(value: unknown): string {
  const label = checkType(value, "label", "string");
  if (label.length > 0 && label.length <= LONGEST_LABEL) return label;
  throw new RangeError(`label must have 1 to ${LONGEST_LABEL} characters; it has ${label.length}`);
}
