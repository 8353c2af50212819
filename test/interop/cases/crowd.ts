/** Many members of both sides use one semaphore for a while; a counter in Redis tells how many are inside. */
import type { Scene } from "../scene.js";

const DURATION = 2_500;

/** Counts the visitor in, and out again. */
export type Visit = (weight?: number) => Promise<void>;

export interface Visits {
  /** The most that were inside at the same time. */
  readonly most: number;
  /** How often each member was inside. */
  readonly ofEach: readonly number[];
}

/**
 * Each member takes its turns one after the other until the time is over; fails if more than `limit` are inside at
 * once.
 */
export async function crowd<T>(
  scene: Scene,
  limit: number,
  members: readonly T[],
  turn: (member: T, index: number, visit: Visit) => Promise<void>,
): Promise<Visits> {
  const inside = scene.name();
  const end = performance.now() + DURATION;
  const ofEach = members.map(() => 0);
  let most = 0;
  const run = async (member: T, index: number) => {
    const visit: Visit = async (weight = 1) => {
      const count = await scene.redis.incrby(inside, weight);
      most = Math.max(most, count);
      if (count > limit) throw new Error(`${count} inside, where ${limit} may be`);
      ofEach[index] = (ofEach[index] ?? 0) + 1;
      await scene.redis.decrby(inside, weight);
    };
    while (performance.now() < end) await turn(member, index, visit);
  };
  await Promise.all(members.map(run));
  return { most, ofEach };
}
