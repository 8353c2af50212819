/** Makes the locks of a call, and takes them: all or none. */
import { monotonic } from "../../base/platform.js";
import { type Hold, isLockError, type LockFace, MultiLock, type Owner, RedLock } from "../../index.js";
import { pause } from "./execution.js";
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

/** Milliseconds: a wait that is shorter than that, and than the default one, does not give a slow server its time. */
const SHORT_WAIT = 2_500;

/** Milliseconds in which those who wait for a lock that is lost can take it, before the call that had it tries again. */
const TURN = 50;

/** This share of the lease may be gone of a lock that was taken earlier than the last one; else it is extended. */
const SHARE_GONE = 1 / 100;

/** Takes all locks, or resolves with null if `wait` was not enough. */
export async function takeAll(
  locks: readonly LockFace<Hold>[],
  { wait, lease, owner }: Terms,
): Promise<readonly Hold[] | null> {
  const until = monotonic() + wait;
  const [only] = locks;
  if (only && locks.length === 1) {
    const hold = await take(only, { until, lease, owner });
    return hold && [hold];
  }
  for (;;) {
    const round = new Round();
    try {
      return await round.take(locks, { until, lease, owner });
    } catch (error) {
      // A hold that was lost while the call waited for a later lock: others may have had it since, so all begins anew.
      const left = until - monotonic();
      if (!round.isLost || left <= 0) throw error;
      await pause(Math.min(left, TURN));
    }
  }
}

/**
 * One run through the locks. It waits for each while it holds those before it. With one order for all calls none waits
 * for another in a circle, and some call always goes on. Were nothing held meanwhile, two calls that have waited for
 * different locks could refuse each other without end. No hold is extended before all are there, so calls that want
 * less get their turn at the end of the lease at the latest.
 */
class Round {
  readonly #taken = new Map<LockFace<Hold>, Hold>();
  /** Aborts when a hold is lost: without it the later locks are of no use. */
  readonly #lost = new AbortController();

  get isLost(): boolean {
    return this.#lost.signal.aborted;
  }

  async take(locks: readonly LockFace<Hold>[], options: TakeOptions): Promise<readonly Hold[] | null> {
    const { signal } = this.#lost;
    try {
      for (const lock of [...locks].sort(byName)) {
        const hold = await take(lock, { ...options, signal });
        if (!hold) {
          await this.#giveBack();
          return null;
        }
        this.#add(lock, hold);
      }
      await this.#extend(options.lease);
      signal.throwIfAborted();
    } catch (error) {
      await this.#giveBack();
      throw error;
    }
    return locks.map((lock) => this.#taken.get(lock) as Hold);
  }

  #add(lock: LockFace<Hold>, hold: Hold): void {
    this.#taken.set(lock, hold);
    const lose = () => this.#lost.abort(hold.signal.reason);
    if (hold.signal.aborted) lose();
    else hold.signal.addEventListener("abort", lose, { once: true });
  }

  /** Gives the whole lease to the holds that had to wait for the others. */
  async #extend(lease: number): Promise<void> {
    const holds = [...this.#taken.values()];
    const most = Math.max(...holds.map(({ remaining }) => remaining));
    const short = holds.filter(({ remaining }) => most - remaining > lease * SHARE_GONE);
    await Promise.all(short.map((hold) => hold.extend(lease)));
  }

  /** A release that fails goes on in the background; its hold ends with its lease at the latest. */
  async #giveBack(): Promise<void> {
    await Promise.allSettled([...this.#taken.values()].map((hold) => hold.unlock()));
  }
}

interface TakeOptions extends Omit<Terms, "wait"> {
  /** Monotonic milliseconds. */
  readonly until: number;
  readonly signal?: AbortSignal;
}

/**
 * Takes one lock, or resolves with null if others have it until the time is over. A wait also bounds the time for the
 * answer of the server. So where it is short, a first try without a wait finds out whether the lock is free.
 */
async function take(lock: LockFace<Hold>, options: TakeOptions): Promise<Hold | null> {
  const { until, lease, owner, signal } = options;
  const left = () => Math.max(0, until - monotonic());
  const isShort = left() < SHORT_WAIT;
  const hold = isShort ? await lock.tryLock(0, lease, { owner, signal }) : null;
  const wait = left();
  if (hold || (isShort && wait === 0)) return hold;
  try {
    return await lock.tryLock(wait, lease, { owner, signal });
  } catch (error) {
    const isUnanswered = isLockError(error, "UNAVAILABLE") || isLockError(error, "QUORUM");
    // The time was over before the next answer: by the last one others have the lock. Timers may be a little early.
    if (isShort && isUnanswered && left() <= 1) return null;
    throw error;
  }
}

/** The same order in all processes. */
function byName(a: LockFace<Hold>, b: LockFace<Hold>): number {
  return a.name < b.name ? -1 : 1;
}
