/** The keys of a name in Redis: read as a whole, and written elsewhere with renamed owners and permits. */
import type { Redis } from "ioredis";

export interface Entry {
  readonly type: "string" | "hash" | "list" | "zset";
  /** A zset's value is by member; bytes are latin1. */
  readonly value: string | string[] | Record<string, string> | Record<string, number>;
  /** The end in epoch ms of the server; null if there is none. */
  readonly expireAt: number | null;
}

export type State = Record<string, Entry>;

/** For Redis 7.0 or later: it asks for instants, because a server may stand still between two looks at its clock. */
const READ = `
local commands = {
  string = { 'GET' }, hash = { 'HGETALL' }, list = { 'LRANGE', 0, -1 }, zset = { 'ZRANGE', 0, -1, 'WITHSCORES' },
}
local found = {}
for _, key in ipairs(redis.call('KEYS', '*' .. ARGV[1] .. '*')) do
  local kind = redis.call('TYPE', key).ok
  local command = commands[kind]
  local value = redis.call(command[1], key, unpack(command, 2))
  found[#found + 1] = { key, kind, value, tostring(redis.call('PEXPIRETIME', key)) }
end
return found`;

/** Keys that only this library writes, or that a release keeps for itself: no other client looks at them. */
const PRIVATE = /^(holdfast_|redisson_unlock_latch)/;

/** All keys whose name contains `name`. `rename` is applied to every key and text. */
export async function readState(
  redis: Redis,
  name: string,
  rename: (text: string) => string,
): Promise<State> {
  const found = (await redis.callBuffer("EVAL", READ, 0, name)) as [
    Buffer,
    Buffer,
    Buffer | Buffer[],
    Buffer,
  ][];
  const state: State = {};
  for (const [key, kind, value, end] of found) {
    if (PRIVATE.test(key.toString("latin1"))) continue;
    const texts = [value].flat().map((each) => rename(each.toString("latin1")));
    const type = kind.toString() as Entry["type"];
    const expireAt = Number(end.toString());
    state[rename(key.toString("latin1"))] = {
      type,
      value: shaped(type, texts),
      expireAt: expireAt < 0 ? null : expireAt,
    };
  }
  return state;
}

function shaped(type: Entry["type"], texts: readonly string[]): Entry["value"] {
  if (type === "string") return texts[0] ?? "";
  if (type === "list") return [...texts];
  const pairs = texts.flatMap((text, i) => (i % 2 ? [] : [[text, texts[i + 1] ?? ""] as const]));
  if (type === "hash") return Object.fromEntries(pairs);
  return Object.fromEntries(pairs.map(([member, score]) => [member, Number(score)]));
}

/** Makes `state` the whole state of `name`. */
export async function writeState(
  redis: Redis,
  name: string,
  state: State,
  rename: (text: string) => string,
): Promise<void> {
  const bytes = (text: string) => Buffer.from(rename(text), "latin1");
  const old = await redis.keysBuffer(`*${name}*`);
  const commands = redis.multi();
  if (old.length > 0) commands.del(...old);
  for (const [key, { type, value, expireAt }] of Object.entries(state)) {
    if (type === "string") commands.set(bytes(key), bytes(value as string));
    else if (type === "list") commands.rpush(bytes(key), ...(value as string[]).map(bytes));
    else if (type === "hash") {
      for (const [field, text] of Object.entries(value))
        commands.hset(bytes(key), bytes(field), bytes(text as string));
    } else {
      for (const [member, score] of Object.entries(value))
        commands.zadd(bytes(key), score as number, bytes(member));
    }
    if (expireAt !== null) commands.pexpireat(bytes(key), expireAt);
  }
  await commands.exec();
}

/** Greater numbers are instants, and no counts. */
const FIRST_INSTANT = 1e12;

/** The differences of `actual`, one line each; instants may differ by `slack` ms. */
export function differences(expected: State, actual: State, slack: number): string[] {
  return [...new Set([...Object.keys(expected), ...Object.keys(actual)])].sort().flatMap((key) => {
    const [a, b] = [expected[key], actual[key]];
    if (!a || !b) return [`${key}: ${a ? "is missing" : "should not be there"} (${JSON.stringify(a ?? b)})`];
    const found: string[] = [];
    if (a.type !== b.type || !sameValue(a.value, b.value, slack)) {
      found.push(`${key}: ${JSON.stringify(b.value)} instead of ${JSON.stringify(a.value)}`);
    }
    if (!sameInstant(a.expireAt, b.expireAt, slack)) {
      const late = a.expireAt !== null && b.expireAt !== null ? ` (${b.expireAt - a.expireAt} ms later)` : "";
      found.push(`${key}: ends at ${b.expireAt} instead of ${a.expireAt}${late}`);
    }
    return found;
  });
}

function sameInstant(a: number | null, b: number | null, slack: number): boolean {
  return a === null || b === null ? a === b : Math.abs(a - b) <= slack;
}

function sameValue(a: Entry["value"], b: Entry["value"], slack: number): boolean {
  if (typeof a === "string" || typeof b === "string") return a === b;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => {
    const [x, y] = [(a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]];
    if (typeof x !== "number" || typeof y !== "number" || x < FIRST_INSTANT) return x === y;
    return Math.abs(x - y) <= slack;
  });
}
