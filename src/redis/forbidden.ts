/** Which keys a user may not use. Redis says only that it is one of those that a command names. */
import type { KeyValues } from "../scripts/script.js";
import type { Connection } from "./connection.js";
import { forbidsKey } from "./failures.js";

/** Asks for each key alone; resolves with those that are refused, with all if none is. */
export async function forbiddenKeys(connection: Connection, keys: KeyValues): Promise<readonly string[]> {
  const all = Object.values(keys).flat();
  const refused = await Promise.all(all.map((key) => isForbidden(connection, key)));
  // A user may be allowed to read what it may not write.
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
