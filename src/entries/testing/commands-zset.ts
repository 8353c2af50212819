/** The commands on sorted sets. */
import { type Commands, integer, rangeOf } from "./command.js";
import type { Keyspace } from "./keyspace.js";
import { formatScore, parseScore } from "./numbers.js";
import { type Reply, ReplyError } from "./reply.js";

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

/** ZADD key [XX GT] score member ... */
function zadd(keys: Keyspace, [key = "", ...rest]: readonly string[]): Reply {
  const onlyRaises = rest[0] === "XX";
  if (onlyRaises) rest.splice(0, 2);
  const scores = rest.filter((_, i) => i % 2 === 0).map(score);
  if (onlyRaises && !keys.get(key, "zset")) return 0;
  const zset = keys.open(key, "zset");
  const before = zset.size;
  for (const [i, next] of scores.entries()) {
    const member = rest[2 * i + 1] as string;
    const present = zset.get(member) ?? Number.POSITIVE_INFINITY;
    if (!onlyRaises || next > present) zset.set(member, unsigned(next));
  }
  return zset.size - before;
}

function zincrby(keys: Keyspace, [key = "", by, member = ""]: readonly string[]): Reply {
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
  [key = "", start, stop, option]: readonly string[],
  reversed: boolean,
): Reply {
  if (option === "BYSCORE") {
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

/** Whether a score lies in this range, its ends included. @throws ReplyError */
function between(least = "", most = ""): (at: number) => boolean {
  const [from, to] = [parseScore(least), parseScore(most)];
  if (from === undefined || to === undefined) throw new ReplyError("ERR min or max is not a float");
  return (at) => at >= from && at <= to;
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
