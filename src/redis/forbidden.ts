/** Finds the keys that a user may not use. Redis only says that a command names one of them. */
import type { Connection } from "./connection.js";
import { forbidsKey } from "./failures.js";

/** Asks for each key alone. Resolves with the keys that are refused, or with all keys if none is. */
export async function forbiddenKeys(
  connection: Connection,
  keys: readonly string[],
): Promise<readonly string[]> {
  const refused = await Promise.all(keys.map((key) => isForbidden(connection, key)));
  // A user may be allowed to read a key but not to write it; then EXISTS refuses none.
  return refused.includes(true) ? keys.filter((_, i) => refused[i]) : keys;
}

async function isForbidden(connection: Connection, key: string): Promise<boolean> {
  try {
    await connection.call("EXISTS", key);
    return false;
  } catch (error) {
    return forbidsKey(error);
  }
}
