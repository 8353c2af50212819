/** The commands on lists. */
import { type Commands, integer, rangeOf } from "./command.js";
import type { Keyspace } from "./keyspace.js";
import { OK, type Reply } from "./reply.js";

function lindex(keys: Keyspace, [key = "", at]: readonly string[]): Reply {
  const list = keys.get(key, "list");
  return list?.at(Number(integer(at))) ?? null;
}

function lpop(keys: Keyspace, [key = ""]: readonly string[]): Reply {
  const first = keys.get(key, "list")?.shift() ?? null;
  keys.deleteIfEmpty(key);
  return first;
}

function lrange(keys: Keyspace, [key = "", start, stop]: readonly string[]): Reply {
  const [from, to] = [integer(start), integer(stop)];
  const list = keys.get(key, "list") ?? [];
  return list.slice(...rangeOf(from, to, list.length));
}

function ltrim(keys: Keyspace, [key = "", start, stop]: readonly string[]): Reply {
  const [from, to] = [integer(start), integer(stop)];
  const list = keys.get(key, "list");
  if (list) list.splice(0, list.length, ...list.slice(...rangeOf(from, to, list.length)));
  keys.deleteIfEmpty(key);
  return OK;
}

export const LIST_COMMANDS: Commands = {
  lindex: { arity: 3, run: lindex },
  llen: { arity: 2, run: (keys, [key = ""]) => keys.get(key, "list")?.length ?? 0 },
  lpop: { arity: 2, run: lpop },
  lrange: { arity: 4, run: lrange },
  ltrim: { arity: 4, run: ltrim },
  rpush: { arity: -3, run: (keys, [key = "", ...items]) => keys.open(key, "list").push(...items) },
};
