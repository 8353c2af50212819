/** Random calls of a script: keys and arguments by their names, from so few values that calls often share a key. */
import { type AnyScript, evalArguments } from "../../../src/scripts/script.js";
import type { Entry } from "../../../tools/lua/header.mjs";
import { callOf, headerOf } from "../../support/named.js";
import type { Random } from "../../support/random.js";
import { type Command, readHold, stateOf } from "./states.js";
import { CHANNELS, IDS, LOCKS, NUMERALS, OWNERS, TERMS, TEXTS } from "./vocabulary.js";

/** The commands that prepare the state, and the command that is compared. */
export interface Case {
  readonly setUp: readonly Command[];
  readonly command: Command;
}

/** Publishing commands; rarely one that does not exist. */
const PUBLISHERS = ["PUBLISH", "PUBLISH", "SPUBLISH", "SPUBLISH", "PUBLISH", "NOPE"];

/** Hold counts, as text. */
const COUNTS = ["counts", "reads", "writes"];

export function randomCall(random: Random, script: AnyScript, now: number): Case {
  const lock = random.pick(LOCKS);
  const size = random.chance(0.9) ? 1 + random.below(3) : 0;
  const owners = random.many(OWNERS, size, size);
  const keys: Record<string, string | string[]> = {};
  const header = headerOf(script);
  for (const { name, variadic } of header.keys) {
    keys[name] = variadic ? restOf(name, lock, owners) : keyOf(name, lock, owners);
  }
  const args = Object.fromEntries(
    header.args.map((entry) => [entry.name, argumentOf(random, entry, owners, now)]),
  );
  const encoded = evalArguments(script.text, callOf(script, { ...keys, ...args }));
  const setUp = Object.entries(keys).flatMap(([name, value]) => {
    const named = typeof value === "string" ? [value] : [...new Set(value)];
    return name === "channel" ? [] : named.flatMap((key) => stateOf(random, name, key, now));
  });
  return { setUp, command: ["EVAL", ...encoded.flat().map(String)] };
}

function keyOf(name: string, lock: string, [owner = "x"]: readonly string[]): string {
  if (name === "lock") return lock;
  if (name === "hold") return readHold(lock, owner, 1);
  if (name === "channel") return CHANNELS[0] as string;
  return `${name}:{job}`;
}

/** The keys for a last key that stands for many: one for each owner. */
function restOf(name: string, lock: string, owners: readonly string[]): string[] {
  if (name === "locks")
    return [lock, ...owners.slice(1).map((_, i) => `other${i}{job}`)].slice(0, Math.max(1, owners.length));
  return owners.map((_, i) => `${name}${i}:{job}`);
}

function argumentOf(
  random: Random,
  { name, type, variadic }: Entry,
  owners: readonly string[],
  now: number,
): string | number | string[] | number[] {
  const one = () => (type === "text" ? textOf(random, name) : numberOf(random, name, type, now));
  if (!variadic) return one();
  if (name === "owners") return [...owners];
  if (name === "coWaiters") return random.some(OWNERS);
  return owners.map(one) as string[] | number[];
}

function textOf(random: Random, name: string): string {
  if (name === "publish") return random.pick(PUBLISHERS);
  if (name === "field" || name === "successorField")
    return `${random.pick(OWNERS)}${random.chance(0.9) ? ":write" : ""}`;
  if (name === "owner" || name === "successor") return random.pick(OWNERS);
  if (name === "nextWriter") return random.pick(["", ...OWNERS]);
  if (name === "tombstones") return "tombstone:{job}:";
  if (COUNTS.includes(name)) return random.pick(["", "0", "1", "2", "3", "17", "9007199254740991"]);
  if (name === "id" || name === "ids") return random.pick(random.chance(0.9) ? IDS : TEXTS);
  if (name === "call") return random.pick(["call", "over"]);
  return random.pick(random.chance(0.5) ? TEXTS : NUMERALS);
}

function numberOf(random: Random, name: string, type: string, now: number): number {
  if (name === "latest") return random.pick([0, 1, now - 1_000, now, now + 1_000, now + 10_000]);
  if (name === "aliveFor") return random.pick([0, 1, 1_000, 9_000, 300_000]);
  if (name === "grace") return random.pick([1, 1_000, 9_000, 300_000]);
  if (type === "ms") return random.pick(TERMS);
  return random.pick([0, 0, 1, 1, 2, 3, 17, Number.MAX_SAFE_INTEGER]);
}
