/** How long the server believes in a waiter that it does not hear of. */
import type { Settings } from "../locks/env.js";

/** How many polls of a waiter may go missing before it counts as dead. */
const MISSED_POLLS = 3;
/** Added to the server's clock it is still exact in Lua's numbers. */
const LONGEST = 2 ** 52;

/** Milliseconds for which the server takes a waiter that it does not hear of for alive. */
export function aliveFor({ pollCap }: Settings): number {
  return Math.min(MISSED_POLLS * pollCap, LONGEST);
}
