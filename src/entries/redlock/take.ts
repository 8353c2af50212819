/** Makes the locks of a call, and takes them: all or none. */
import { monotonic } from "../../base/platform.js";
import { type Hold, type LockFace, MultiLock, type Owner, RedLock } from "../../index.js";
import type { Master } from "./masters.js";

const FEWEST_FOR_REDLOCK = 3;

/**
 * On one master, or on two (a quorum of which is both): one lock that stands for all names. On more masters: a RedLock
 * for each name. @throws TypeError, RangeError for wrong names
 */
export function locksOf(masters: readonly Master[], names: readonly string[]): readonly LockFace<Hold>[] {
  const onAll = (name: string) => masters.map(({ client }) => client.getLock(name));
  if (masters.length >= FEWEST_FOR_REDLOCK) return names.map((name) => new RedLock(...onAll(name)));
  const locks = names.flatMap(onAll);
  const [only] = locks;
  return [only && locks.length === 1 ? only : new MultiLock(...locks)];
}

/** The terms of {@link takeAll}. Times are milliseconds. */
export interface Terms {
  readonly wait: number;
  readonly lease: number;
  readonly owner: Owner;
}

/**
 * Takes all locks, or resolves with null if `wait` was not enough. It waits for one lock at a time and holds none
 * meanwhile, so no order of names can dead-lock. The lock that it has waited for is the first that it takes.
 */
export async function takeAll(
  locks: readonly LockFace<Hold>[],
  { wait, lease, owner }: Terms,
): Promise<readonly Hold[] | null> {
  const until = monotonic() + wait;
  let busy = locks[0] as LockFace<Hold>;
  for (;;) {
    const taken = new Map<LockFace<Hold>, Hold>();
    let refused: LockFace<Hold> | undefined;
    try {
      for (const lock of [busy, ...locks.filter((each) => each !== busy)]) {
        const left = lock === busy ? Math.max(0, until - monotonic()) : 0;
        const hold = await lock.tryLock(left, lease, { owner });
        if (hold) taken.set(lock, hold);
        else refused = lock;
        if (refused) break;
      }
    } catch (error) {
      await giveBack(taken.values());
      throw error;
    }
    if (!refused) return locks.map((lock) => taken.get(lock) as Hold);
    await giveBack(taken.values());
    if (refused === busy || monotonic() >= until) return null;
    busy = refused;
  }
}

/** A release that fails goes on in the background; its hold ends with its lease at the latest. */
async function giveBack(holds: Iterable<Hold>): Promise<void> {
  await Promise.allSettled([...holds].map((hold) => hold.unlock()));
}
