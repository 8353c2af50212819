/**
 * Mistakes that locks have had, each planted into this library: in its scripts, by their names, or in what its clients
 * are made with. A few schedules from a seed on find each of them.
 */
import { type Hold, isLockError } from "../../src/index.js";
import { both, IN_SCRIPTS, inject, inScripts, type Plant } from "./planting.js";
import type { Kind } from "./schedule.js";

export interface Planted {
  readonly name: string;
  /** What the library does wrong. */
  readonly what: string;
  /** The kind of schedules, and the seed from which on they find it. */
  readonly kind: Kind;
  readonly seed: number;
  readonly plant: Plant;
  /** Whether the histories alone show it: they are not linearizable. */
  readonly isInHistories: boolean;
}

/** A hold that is told to be there, whatever happens. */
function forEver(hold: Hold): Hold {
  const get = (target: Hold, key: string | symbol) => {
    if (key === "isHeld") return true;
    const value = target[key as keyof Hold] as unknown;
    return typeof value === "function" ? value.bind(target) : value;
  };
  return new Proxy(hold, { get });
}

/** What is granted to a call that was refused, in place of an error. */
const ADMITTED = {
  ownerId: "nobody:1",
  isHeld: true,
  signal: new AbortController().signal,
  unlock: async () => {},
} as unknown as Hold;

const { abort } = AbortController.prototype;

const withoutSignals: Plant = () => {
  AbortController.prototype.abort = function onlyOthers(this: AbortController, reason?: unknown) {
    if (!isLockError(reason, "LOCK_LOST")) abort.call(this, reason);
  };
  return () => {
    AbortController.prototype.abort = abort;
  };
};

type Row = readonly [
  name: string,
  kind: Kind,
  seed: number,
  what: string,
  plant: Plant,
  isInHistories?: true,
];

const IN_CLIENTS: readonly Row[] = [
  ["loses in silence", "lock", 18, "no signal tells of a loss", withoutSignals],
  [
    "holds for ever",
    "lock",
    18,
    "a hold whose lease is over is still held",
    inject({ granted: (granting) => granting.then((hold) => hold && forEver(hold)) }),
    true,
  ],
  [
    "its clock is slow",
    "lock",
    188,
    "the deadline here comes after that of the server, as if it counted from the reply",
    inject({ clock: (clock) => ({ ...clock, mono: () => clock.mono() * 0.7 }) }),
  ],
  [
    "sleeps for an hour",
    "fair",
    6,
    "a waiter that nobody wakes does not try by itself",
    both(
      inject({ options: { pollCap: 3_600_000 } }),
      inScripts(["fair/take"], { after: "if reply ~= 1 and reply[1] == 0 then reply[2] = 3600000 end" }),
    ),
  ],
  [
    "admits an upgrade",
    "readwrite",
    13,
    "a reader becomes a writer",
    inject({
      granted: (granting) =>
        granting.catch((error) => {
          if (isLockError(error, "UPGRADE_REFUSED")) return ADMITTED;
          throw error;
        }),
    }),
  ],
];

export const PLANTED: readonly Planted[] = [
  ...IN_SCRIPTS.map(({ name, what, found, scripts, lua }) => {
    const [kind, seed, inHistories] = found.split(" ");
    const plant = inScripts(scripts, lua);
    return {
      name,
      what,
      kind: kind as Kind,
      seed: Number(seed),
      plant,
      isInHistories: inHistories === "history",
    };
  }),
  ...IN_CLIENTS.map(([name, kind, seed, what, plant, isInHistories = false]) => {
    return { name, kind, seed, what, plant, isInHistories };
  }),
];
