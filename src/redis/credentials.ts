/**
 * ioredis reads the credentials of a connection each time it connects, so that users can set new ones on its options:
 * passwords and tokens that run out. What the library connects by itself has to go along with that. (A Cluster keeps the
 * credentials that it was made with.)
 */
import type { ConnectionOptions } from "./connection.js";

const CREDENTIALS = ["username", "password", "sentinelUsername", "sentinelPassword"] as const;

/** From now on the credentials in `own` are those that `source` has at the time. */
export function followCredentials(own: ConnectionOptions, source: ConnectionOptions): void {
  for (const name of CREDENTIALS) Object.defineProperty(own, name, { get: () => source[name] });
}
