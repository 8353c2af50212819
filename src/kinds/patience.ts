import type { Settings } from "../locks/env.js";

/** How many polls of a waiter may go missing before it counts as dead. */
const MISSED_POLLS = 3;

/** Milliseconds for which the server takes a waiter that it does not hear of for alive. */
export function patience({ pollCap }: Settings): number {
  return MISSED_POLLS * pollCap;
}
