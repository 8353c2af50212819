/** How long the server counts a silent waiter as alive. */
import type { Settings } from "../locks/env.js";

/** How many polls of a waiter may go missing before it counts as dead. */
const MISSED_POLLS = 3;
/** Milliseconds. The sum of this and the server's clock is still exact in Lua's numbers. */
const LONGEST = 2 ** 52;

/** Milliseconds for which the server counts a waiter as alive after it has last heard of it. */
export function aliveFor({ pollCap }: Settings): number {
  return Math.min(MISSED_POLLS * pollCap, LONGEST);
}
