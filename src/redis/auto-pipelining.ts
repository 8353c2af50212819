/**
 * Finds out whether ioredis can be used with `enableAutoPipelining` on a cluster. ioredis before 5.11 puts all scripts
 * of a tick into one pipeline for one master, chosen by their text instead of their keys; then it refuses that pipeline
 * itself if two locks are asked for at once. The check sends two scripts, since a connection does not tell its version.
 */
import { UnsupportedServerError } from "../base/errors.js";
import { type Connection, isCluster, masterOf } from "./connection.js";

const ENOUGH_NAMES = 100;
const WHAT = "this ioredis takes no two locks at once on a cluster with enableAutoPipelining";
const CURE =
  'use ioredis 5.11 or later, or set its option autoPipeliningIgnoredCommands: ["eval", "evalsha"]';

/** `name`: the start of the names of the keys that the check uses; it does not change them. @throws UNSUPPORTED */
export async function checkAutoPipelining(connection: Connection, name: string): Promise<void> {
  const keys = keysApart(connection, name);
  if (!keys || !connection.options.enableAutoPipelining) return;
  const asked = await Promise.allSettled(keys.map((key) => connection.eval("return 1", 1, key)));
  const mixed = asked.some(
    (result) => result.status === "rejected" && /should belong to the same slot/.test(String(result.reason)),
  );
  if (mixed) throw new UnsupportedServerError("", WHAT, undefined, CURE);
}

/** Two keys of different masters; undefined without a cluster, or if one master has it all. */
function keysApart(connection: Connection, name: string): [string, string] | undefined {
  if (!isCluster(connection)) return undefined;
  const master = masterOf(connection, name);
  for (let n = 0; n < ENOUGH_NAMES; n++) {
    const other = `${name}-${n}`;
    if (masterOf(connection, other) !== master) return [name, other];
  }
  return undefined;
}
