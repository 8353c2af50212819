/**
 * What the planted locks have in common. Each lock is wrong in one way only, which its own file shows.
 *
 * @typedef {object} PlantedHold
 * @property {number} remaining ms to the deadline by the holder's own clock
 * @property {boolean} isHeld
 * @property {() => Promise<unknown>} unlock
 * @property {string} [ownerId]
 * @property {bigint} [token]
 *
 * @typedef {object} How
 * @property {"only" | "read" | "write"} side
 * @property {PlantedHold} [within] the hold whose owner makes the call
 * @property {AbortSignal} [signal]
 *
 * @typedef {object} Adapter
 * @property {(name: string, wait: number, lease: number, how: How) => Promise<PlantedHold | null>} take
 * @property {(hold: PlantedHold, side: string) => { at: bigint, before: "all" | "readers" } | undefined} [placeOf]
 */
import { randomUUID } from "node:crypto";

const DELETE_OWN = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** Gives back a lock that is a string with its owner's token, in the right way. */
export function deleteOwn(redis, name, token) {
  return redis.eval(DELETE_OWN, 1, name, token);
}

export function newToken() {
  return randomUUID();
}

/** A deadline by the monotonic clock, counted from its creation. */
export class Deadline {
  #end;

  constructor(lease) {
    this.#end = performance.now() + lease;
  }

  get remaining() {
    return Math.max(0, this.#end - performance.now());
  }
}

/** Tries for `wait` milliseconds, until `attempt` returns a hold. */
export async function poll(wait, attempt) {
  const end = performance.now() + wait;
  for (;;) {
    const hold = await attempt();
    if (hold || performance.now() >= end) return hold;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
