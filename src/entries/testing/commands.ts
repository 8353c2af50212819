/** The commands on keys and strings, and the table of all that scripts may call: what this library sends, and no more. */

import { type Commands, integer } from "./command.js";
import { HASH_COMMANDS } from "./commands-hash.js";
import { LIST_COMMANDS } from "./commands-list.js";
import { ZSET_COMMANDS } from "./commands-zset.js";
import { matchesGlob } from "./glob.js";
import type { Keyspace } from "./keyspace.js";
import { fitsInteger } from "./numbers.js";
import { OK, type Reply, ReplyError, Status } from "./reply.js";

const LONGEST = 2n ** 63n - 1n;

/** A time to live, from now. @throws ReplyError */
function timeToLive(keys: Keyspace, text: string | undefined, command: string): bigint {
  const ttl = integer(text);
  if (ttl <= LONGEST - BigInt(keys.now)) return ttl;
  throw new ReplyError(`ERR invalid expire time in '${command}' command`);
}

/** SET key value [PX milliseconds | KEEPTTL] */
function set(keys: Keyspace, [key = "", value = "", option, time]: readonly string[]): Reply {
  if (option !== "PX") {
    keys.setString(key, value, option === "KEEPTTL" ? undefined : null);
    return OK;
  }
  const ttl = timeToLive(keys, time, "set");
  if (ttl <= 0n) throw new ReplyError("ERR invalid expire time in 'set' command");
  keys.setString(key, value, ttl);
  return OK;
}

function add(keys: Keyspace, key: string, amount: bigint): Reply {
  const before = keys.get(key, "string");
  const sum = (before === undefined ? 0n : integer(before)) + amount;
  if (!fitsInteger(sum)) throw new ReplyError("ERR increment or decrement would overflow");
  keys.setString(key, String(sum));
  return sum;
}

function subtract(keys: Keyspace, [key = "", amount]: readonly string[]): Reply {
  const less = -integer(amount);
  if (!fitsInteger(less)) throw new ReplyError("ERR decrement would overflow");
  return add(keys, key, less);
}

/** GETRANGE key start end, of indices from the begin of the text. */
function getRange(keys: Keyspace, [key = "", start, end]: readonly string[]): Reply {
  return (keys.get(key, "string") ?? "").slice(Number(integer(start)), Number(integer(end)) + 1);
}

/** SCAN cursor [MATCH pattern] [COUNT count] [TYPE type] */
function scan(keys: Keyspace, [cursor = "", ...options]: readonly string[]): Reply {
  const asked: Record<string, string> = {};
  for (let i = 0; i < options.length; i += 2) asked[options[i] as string] = options[i + 1] as string;
  const { MATCH: pattern = "*", COUNT: count = "10", TYPE: type } = asked;
  const { next, keys: page } = keys.scan(Number(cursor), Number(count));
  const fits = (key: string) =>
    (type === undefined || keys.typeOf(key) === type) && matchesGlob(pattern, key);
  return [String(next), page.filter(fits)];
}

function time({ now }: Keyspace): Reply {
  return [String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)];
}

export const COMMANDS: Commands = {
  decrby: { arity: 3, run: subtract },
  del: { arity: -2, run: (keys, names) => names.filter((key) => keys.delete(key)).length },
  exists: { arity: -2, run: (keys, names) => names.filter((key) => keys.typeOf(key)).length },
  get: { arity: 2, run: (keys, [key = ""]) => keys.get(key, "string") ?? null },
  getrange: { arity: 4, run: getRange },
  incr: { arity: 2, run: (keys, [key = ""]) => add(keys, key, 1n) },
  incrby: { arity: 3, run: (keys, [key = "", amount]) => add(keys, key, integer(amount)) },
  pexpire: {
    arity: 3,
    run: (keys, [key = "", ttl]) => (keys.expire(key, timeToLive(keys, ttl, "pexpire")) ? 1 : 0),
  },
  ping: { arity: -1, run: (_keys, [text]) => text ?? new Status("PONG") },
  pttl: { arity: 2, run: (keys, [key = ""]) => keys.ttl(key) },
  scan: { arity: -2, run: scan },
  set: { arity: -3, run: set },
  time: { arity: 1, run: time },
  type: { arity: 2, run: (keys, [key = ""]) => new Status(keys.typeOf(key) ?? "none") },
  // There are no replicas.
  wait: { arity: 3, run: () => 0 },
  ...HASH_COMMANDS,
  ...LIST_COMMANDS,
  ...ZSET_COMMANDS,
};
