/** Finds the keys that a user may not use. Redis only says that a command names one of them. */
import type { KeyValues } from "../scripts/script.js";
import type { Connection } from "./connection.js";
import { forbidsKey } from "./failures.js";

/** Asks for each key alone. Resolves with the keys that are refused, or with all keys if none is. */
export async function forbiddenKeys(connection: Connection, keys: KeyValues): Promise<readonly string[]> {
  const all = Object.values(keys).flat();
  const refused = await Promise.all(all.map((key) => isForbidden(connection, key)));
  // A user may be allowed to read a key but not to write it; then EXISTS refuses none.
  return refused.includes(true) ? all.filter((_, i) => refused[i]) : all;
}

async function isForbidden(connection: Connection, key: string): Promise<boolean> {
  try {
    await connection.call("EXISTS", key);
    return false;
  } catch (error) {
    return forbidsKey(error);
  }
}
