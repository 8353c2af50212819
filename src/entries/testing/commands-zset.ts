/** The commands on sorted sets. */
import { type Commands, integer, rangeOf } from "./command.js";
import type { Keyspace } from "./keyspace.js";
import { formatScore, parseScore, strtod } from "./numbers.js";
import { type Reply, ReplyError, SYNTAX } from "./reply.js";

const FLAG = /^(xx|gt)$/i;

/** @throws ReplyError */
function score(text: string | undefined): number {
  const value = parseScore(text ?? "");
  if (value === undefined) throw new ReplyError("ERR value is not a valid float");
  return value;
}

/** A score as Redis keeps it: zero has no sign. */
function unsigned(value: number): number {
  return value === 0 ? 0 : value;
}

/** The members by score, then by their bytes. */
function ordered(keys: Keyspace, key: string): [member: string, score: number][] {
  return [...(keys.get(key, "zset") ?? [])].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
}

/** ZADD key [XX] [GT] score member ... */
function zadd(keys: Keyspace, [key = "", ...rest]: readonly string[]): Reply {
  const flags = new Set<string>();
  while (FLAG.test(rest[0] ?? "")) flags.add((rest.shift() as string).toUpperCase());
  if (rest.length === 0 || rest.length % 2 > 0) throw new ReplyError(SYNTAX);
  const scores: number[] = [];
  for (let i = 0; i < rest.length; i += 2) scores.push(score(rest[i]));
  if (flags.has("XX") && !keys.get(key, "zset")) return 0;
  const zset = keys.open(key, "zset");
  const before = zset.size;
  for (const [i, next] of scores.entries()) {
    const member = rest[2 * i + 1] as string;
    const present = zset.get(member);
    if (present === undefined ? flags.has("XX") : flags.has("GT") && next <= present) continue;
    zset.set(member, unsigned(next));
  }
  return zset.size - before;
}

function zincrby(keys: Keyspace, [key = "", by, member = ""]: readonly string[]): Reply {
  // To Redis ZINCRBY is a ZADD, to which these words are flags.
  if (FLAG.test(by ?? "")) throw new ReplyError(SYNTAX);
  const amount = score(by);
  const before = keys.get(key, "zset")?.get(member);
  const sum = before === undefined ? amount : before + amount;
  if (Number.isNaN(sum)) throw new ReplyError("ERR resulting score is not a number (NaN)");
  keys.open(key, "zset").set(member, unsigned(sum));
  return formatScore(sum);
}

/** ZRANGE key start stop [WITHSCORES], ZRANGE key min max BYSCORE, ZREVRANGE key start stop [WITHSCORES] */
function zrange(
  keys: Keyspace,
  [key = "", start, stop, option, more]: readonly string[],
  reversed: boolean,
): Reply {
  const word = option?.toUpperCase();
  const byScore = word === "BYSCORE" && !reversed;
  if (more !== undefined || (word !== undefined && word !== "WITHSCORES" && !byScore))
    throw new ReplyError(SYNTAX);
  if (byScore) {
    const isWithin = between(start, stop);
    return ordered(keys, key).flatMap(([member, at]) => (isWithin(at) ? [member] : []));
  }
  const [from, to] = [integer(start), integer(stop)];
  const members = ordered(keys, key);
  if (reversed) members.reverse();
  const range = members.slice(...rangeOf(from, to, members.length));
  return range.flatMap(([member, at]) => (option === undefined ? [member] : [member, formatScore(at)]));
}

function zrem(keys: Keyspace, [key = "", ...members]: readonly string[]): Reply {
  const zset = keys.get(key, "zset");
  const removed = members.filter((member) => zset?.delete(member)).length;
  keys.deleteIfEmpty(key);
  return removed;
}

/** A bound of scores. "(" leaves the bound itself out; an empty text is 0. @throws ReplyError */
function bound(text = ""): { readonly at: number; readonly isOpen: boolean } {
  const isOpen = text.startsWith("(");
  const [numeral = ""] = text.slice(isOpen ? 1 : 0).split("\0");
  const number = numeral === "" ? { value: 0, length: 0 } : strtod(numeral);
  if (number?.length !== numeral.length || Number.isNaN(number.value))
    throw new ReplyError("ERR min or max is not a float");
  return { at: number.value, isOpen };
}

/** Whether a score lies in this range. @throws ReplyError */
function between(least: string | undefined, most: string | undefined): (at: number) => boolean {
  const [from, to] = [bound(least), bound(most)];
  return (at) => (from.isOpen ? at > from.at : at >= from.at) && (to.isOpen ? at < to.at : at <= to.at);
}

function zremrangebyscore(keys: Keyspace, [key = "", least, most]: readonly string[]): Reply {
  const isWithin = between(least, most);
  const zset = keys.get(key, "zset");
  const removed = [...(zset ?? [])].filter(([member, at]) => isWithin(at) && zset?.delete(member)).length;
  keys.deleteIfEmpty(key);
  return removed;
}

function zscore(keys: Keyspace, [key = "", member = ""]: readonly string[]): Reply {
  const at = keys.get(key, "zset")?.get(member);
  return at === undefined ? null : formatScore(at);
}

export const ZSET_COMMANDS: Commands = {
  zadd: { arity: -4, run: zadd },
  zcard: { arity: 2, run: (keys, [key = ""]) => keys.get(key, "zset")?.size ?? 0 },
  zincrby: { arity: 4, run: zincrby },
  zrange: { arity: -4, run: (keys, args) => zrange(keys, args, false) },
  zrem: { arity: -3, run: zrem },
  zremrangebyscore: { arity: 4, run: zremrangebyscore },
  zrevrange: { arity: -4, run: (keys, args) => zrange(keys, args, true) },
  zscore: { arity: 3, run: zscore },
};
