/** Random states of a script's keys, as commands that make them: mostly states that may occur, sometimes others. */
import type { Random } from "../../support/random.js";
import { IDS, NUMERALS, OWNERS, rawId, score, TERMS, TEXTS } from "./vocabulary.js";

export type Command = readonly string[];

/** How likely a key exists, or a tombstone, behind which most scripts do nothing; has another type than it should, and has a TTL. */
const PRESENT = 0.75;
const BURIED = 0.2;
const ASTRAY = 0.08;
const MORTAL = 0.75;

/** The commands for a key, by the name that a script has for it. */
export function stateOf(random: Random, name: string, key: string, now: number): Command[] {
  if (!random.chance(BY_NAME[name] === tombstone ? BURIED : PRESENT)) return [];
  const make = random.chance(ASTRAY) ? random.pick(SHAPES) : (BY_NAME[name] ?? random.pick(SHAPES));
  const commands = make(random, key, now);
  if (commands.length > 0 && random.chance(MORTAL))
    commands.push(["PEXPIRE", key, String(random.pick(TERMS))]);
  return commands;
}

/** The key of a read hold, as a script builds it. */
export function readHold(lock: string, owner: string, number: number): string {
  return `${lock.includes("{") ? lock : `{${lock}}`}:${owner}:rwlock_timeout:${number}`;
}

type Shape = (random: Random, key: string, now: number) => Command[];

function hset(key: string, fields: Readonly<Record<string, string>>): Command[] {
  const pairs = Object.entries(fields).flat();
  return pairs.length > 0 ? [["HSET", key, ...pairs]] : [];
}

const COUNTS = ["1", "2", "3"];

function lock(random: Random, key: string): Command[] {
  return hset(key, { [random.pick(OWNERS)]: random.pick(COUNTS) });
}

/** A read-write lock, with the keys of its read holds. */
function shared(random: Random, key: string): Command[] {
  const fields: Record<string, string> = { mode: random.pick(["read", "read", "write"]) };
  if (fields.mode === "write") fields[`${random.pick(OWNERS)}:write`] = random.pick(COUNTS);
  const commands: Command[] = [];
  for (const owner of random.some(OWNERS)) {
    const count = random.chance(0.9) ? random.pick(COUNTS) : random.pick(["0", "4", "nan", "-1", "1e1", "x"]);
    fields[owner] = count;
    for (const number of random.some([1, 2, 3], 0.8)) {
      const hold = readHold(key, owner, number);
      commands.push(
        random.chance(0.9) ? ["SET", hold, "1", "PX", String(random.pick(TERMS))] : ["SET", hold, "1"],
      );
    }
  }
  return [...hset(key, fields), ...commands];
}

/** A hash of another program, or one that is nearly a lock's. */
function foreign(random: Random, key: string): Command[] {
  const writers = OWNERS.map((owner) => `${owner}:write`);
  const fields = [...OWNERS, ...writers, "mode", "x", "6e3814a1:1", `${OWNERS[0]}9`];
  const values = [...NUMERALS, ...COUNTS, "read", "write", "123456"];
  return hset(
    key,
    Object.fromEntries(random.many(fields, 1, 4).map((field) => [field, random.pick(values)])),
  );
}

function text(random: Random, key: string): Command[] {
  return [["SET", key, random.pick([...NUMERALS, ...TEXTS, ...OWNERS])]];
}

function number(random: Random, key: string): Command[] {
  return [
    ["SET", key, random.chance(0.7) ? random.pick(["0", "1", "2", "5", "-3", "100"]) : random.pick(NUMERALS)],
  ];
}

/** What END found of a wire id. */
function tombstone(random: Random, key: string): Command[] {
  return random.chance(0.5) ? [["SET", key, random.pick(["-1", "0", "1", "2", "3"])]] : text(random, key);
}

function list(random: Random, key: string): Command[] {
  const waiters = random.chance(0.8) ? random.some(OWNERS, 0.8) : random.many([...OWNERS, ...TEXTS], 1, 5);
  return waiters.length > 0 ? [["RPUSH", key, ...waiters]] : [];
}

/** A sorted set of times. */
function times(members: readonly string[]): Shape {
  return (random, key, now) => {
    const known = random.some(members, 0.8).flatMap((member) => [score(random, now), member]);
    return known.length > 0 ? [["ZADD", key, ...known]] : [];
  };
}

const leases = times([...IDS.map(rawId), "", "x"]);
const waiters = times([...OWNERS, "x"]);

function anyLock(random: Random, key: string): Command[] {
  return random.pick([lock, lock, shared, shared, foreign])(random, key);
}

const SHAPES: readonly Shape[] = [lock, shared, foreign, text, number, list, waiters, leases];

const shapes = (shape: Shape, ...names: string[]) => Object.fromEntries(names.map((name) => [name, shape]));

const BY_NAME: Readonly<Record<string, Shape>> = {
  ...shapes(anyLock, "lock", "locks"),
  ...shapes(list, "queue"),
  ...shapes(waiters, "timeouts", "alive", "writers", "index"),
  ...shapes(leases, "leases"),
  ...shapes(number, "permits", "number", "count", "counter"),
  ...shapes(
    tombstone,
    "tombstone",
    "tombstones",
    "sideTombstone",
    "successorTombstone",
    "successorSide",
    "nextTombstone",
  ),
  ...shapes(text, "hold", "marker", "probe"),
  ...shapes(foreign, "client"),
};
