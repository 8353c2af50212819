// The real lock behind the same face, to pass where the planted ones are found. A lease of `watchdogTimeout` is left to the watchdog.
import { LockClient } from "holdfast";

/** @returns {import("./shared.mjs").Adapter} */
export function connect(redis, { watchdogTimeout }) {
  const client = new LockClient(redis, { watchdogTimeout });
  return {
    take: (name, wait, lease) =>
      client.getLock(name).tryLock(wait, watchdogTimeout === lease ? undefined : lease),
  };
}
