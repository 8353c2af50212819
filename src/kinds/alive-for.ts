/** How long the server counts a silent waiter as alive. */
import { REFRESHES, refreshEvery } from "../engine/tickets.js";
import type { Settings } from "../locks/env.js";

/** Milliseconds. The sum of this and the server's clock is still exact in Lua's numbers. */
const LONGEST = 2 ** 52;

/** Milliseconds for which the server counts a waiter as alive after it has last heard of it. */
export function aliveFor({ pollCap }: Settings): number {
  return Math.min(REFRESHES * refreshEvery(pollCap), LONGEST);
}
