/** The commands on hashes. */
import { type Commands, integer } from "./command.js";
import type { Keyspace } from "./keyspace.js";
import { type Reply, ReplyError } from "./reply.js";

function hset(keys: Keyspace, [key = "", ...pairs]: readonly string[]): Reply {
  if (pairs.length % 2 > 0) throw new ReplyError("ERR wrong number of arguments for 'hset' command");
  const hash = keys.open(key, "hash");
  const before = hash.size;
  for (let i = 0; i < pairs.length; i += 2) hash.set(pairs[i] as string, pairs[i + 1] as string);
  return hash.size - before;
}

function hdel(keys: Keyspace, [key = "", ...fields]: readonly string[]): Reply {
  const hash = keys.get(key, "hash");
  const deleted = fields.filter((field) => hash?.delete(field)).length;
  keys.deleteIfEmpty(key);
  return deleted;
}

/** HRANDFIELD key count [WITHVALUES]: so many fields, each once. */
function hrandfield(keys: Keyspace, [key = "", count, option]: readonly string[]): Reply {
  const wanted = integer(count);
  const fields = [...(keys.get(key, "hash") ?? [])];
  while (fields.length > wanted) fields.splice(Math.floor(Math.random() * fields.length), 1);
  return fields.flatMap(([field, value]) => (option === undefined ? [field] : [field, value]));
}

export const HASH_COMMANDS: Commands = {
  hdel: { arity: -3, run: hdel },
  hexists: {
    arity: 3,
    run: (keys, [key = "", field = ""]) => (keys.get(key, "hash")?.has(field) ? 1 : 0),
  },
  hget: { arity: 3, run: (keys, [key = "", field = ""]) => keys.get(key, "hash")?.get(field) ?? null },
  hgetall: { arity: 2, run: (keys, [key = ""]) => [...(keys.get(key, "hash") ?? [])].flat() },
  hkeys: { arity: 2, run: (keys, [key = ""]) => [...(keys.get(key, "hash")?.keys() ?? [])] },
  hlen: { arity: 2, run: (keys, [key = ""]) => keys.get(key, "hash")?.size ?? 0 },
  hrandfield: { arity: -3, run: hrandfield },
  hset: { arity: -4, run: hset },
};
