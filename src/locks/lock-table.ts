/** Makes the table of the locks that the owners of one client have. */

import { LiveSet } from "../base/live-set.js";
import { Watchdog, type WatchdogOptions } from "../watchdog/watchdog.js";
import { BareCalls } from "./bare-calls.js";
import type { Env } from "./env.js";
import type { LockTable } from "./owner-lock.js";
import { renewal } from "./renewal.js";

export function makeLockTable(env: Env, options: WatchdogOptions): LockTable {
  return {
    env,
    live: new LiveSet(env.stir),
    watchdog: new Watchdog(options, renewal),
    bareCalls: new BareCalls(env.clock),
  };
}
