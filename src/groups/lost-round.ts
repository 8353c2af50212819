/**
 * How long a call for all of several locks pauses after a lost round: a random time, or two calls would go on refusing each
 * other. A call that has lost more rounds makes way for less long, so that who has waited longest comes through.
 */

/** The longest pause, in times of a round and its undoing. */
const LONGEST_PAUSE = 8;
/** Milliseconds. Timers are no more exact than this. */
const SHORTEST = 1;
/** Milliseconds. A round whose server is silent says nothing of how far away the server is. */
const LONGEST_ROUND = 20;

/** Milliseconds. `lost`: rounds so far; `took`: milliseconds of the last one; `chance`: from 0 up to 1. */
export function pauseAfter(lost: number, took: number, chance: number): number {
  const time = SHORTEST + 2 * Math.min(LONGEST_ROUND, took);
  return chance * time * Math.max(1, LONGEST_PAUSE / lost);
}
