/**
 * Decides when the first waiter of a process tries, and what a release here does with the lock: pass it to the next
 * waiter of this process, offer it to other processes first, or release it. This is lock cohorting (Dice, Marathe and
 * Shavit, "Lock Cohorting", 2012): a lock stays in a process long enough to be cheap, never so long that others starve.
 *
 * Pure: the caller tells what happened and when, and the policy answers what to do. It neither sends nor sleeps. Times
 * are milliseconds of a monotonic clock.
 */

/** Hand-overs in one turn, however many calls wait: each process is to have the lock equally often. */
const TURN = 4;
/**
 * A shorter time is not worth a message: other processes are not asked (waking them all costs about as much), waiters
 * behind a holder of this process do not subscribe, and an empty queue is kept.
 */
export const SHORTEST_TURN = 8;
/** So long after the last offer, the next release offers the lock. Also the longest back-off for each process ahead. */
const LONGEST_TURN = 50;
/**
 * After so long in this process the lock is released for all: an offer does not count processes that listen at a replica,
 * and these must not starve. Also the longest back-off in total.
 */
const LONGEST_STAY = 1_000;
/** The shortest back-off for each process ahead. It is twice this process's own turn if that is longer. */
const SHORTEST_BACKOFF = 4;

const NEVER = Number.NEGATIVE_INFINITY;

export type Handoff = "passLocal" | "offer" | "release";

export class HandoffPolicy {
  readonly #longestBackoff: number;
  /** When the lock came to this process; {@link NEVER} while no two calls of this process have shared it. */
  #since = NEVER;
  /** When the turn began: the lock came to this process, or was offered to others; {@link NEVER} before. */
  #offeredAt = NEVER;
  /** Hand-overs until the lock is offered to others again. */
  #left = 0;
  /** How many processes go before this one. */
  #ahead = 0;
  /** Back-off for each process ahead. */
  #backoff = SHORTEST_BACKOFF;
  /** No message came since the last back-off: perhaps a process listens that never takes the lock. */
  #noTaker = false;
  /** Until then, the next message may be the announcement of this process itself. */
  #ownUntil = NEVER;
  /** Something may have changed since the last try began. */
  #wanted = true;
  /** When the wanted try is due. */
  #tryAt = NEVER;
  /** Until then no try is due unless something changes: the lock is known to be held. */
  #quietUntil = NEVER;

  /** `advertised`: the server must soon hear of the waiter, so it backs off for the shortest time only. */
  constructor(advertised: boolean) {
    this.#longestBackoff = advertised ? SHORTEST_BACKOFF : LONGEST_TURN;
  }

  /** Whether several calls of this process have shared the lock. */
  get active(): boolean {
    return this.#since !== NEVER;
  }

  /** Whether other processes go first. */
  get backsOff(): boolean {
    return this.#ahead > 0;
  }

  /** Milliseconds until the first waiter's next try is due; 0 when it is. */
  due(now: number): number {
    return Math.max(0, (this.#wanted ? this.#tryAt : this.#quietUntil) - now);
  }

  /** The first waiter tries. Its try sees everything that happened before. */
  trying(): void {
    this.#wanted = false;
    this.#tryAt = NEVER;
  }

  /** The first waiter tries in `ms` milliseconds, or earlier if something changes. */
  tryIn(ms: number, now: number): void {
    this.#wanted = true;
    this.#tryAt = now + ms;
  }

  /** The next waiter tries as soon as it is the first. */
  want(): void {
    this.#wanted = true;
  }

  /** No try is due for `ms` unless something changes. */
  quiet(ms: number, now: number): void {
    this.#quietUntil = now + ms;
  }

  /** Something may have changed. `backoff`: milliseconds for which the waiter itself lets others go first. */
  changed(backoff: number, now: number): void {
    this.#noTaker = false;
    if (this.#ahead > 0) {
      // One of the processes ahead has had its turn.
      this.#ahead--;
      this.#wait(now);
    } else {
      // Never postpone a scheduled try.
      this.tryIn(this.#wanted ? Math.min(backoff, this.#tryAt - now) : backoff, now);
    }
  }

  /** A message came. Our own announcement looks like another's release, so a message that may be ours counts later. */
  message(backoff: number, now: number): void {
    const own = this.#ownUntil - now;
    this.#ownUntil = NEVER;
    if (own <= 0) this.changed(backoff, now);
    else if (!this.#wanted) this.tryIn(own, now);
  }

  /** The lock came from another process. */
  arrived(now: number): void {
    this.#since = now;
    this.#beginTurn(now);
  }

  /** The first waiter of this process has the lock. */
  granted(): void {
    this.#ahead = 0;
  }

  /**
   * The lock is about to be given back, and a call of this process waits. `listening`: this process is subscribed, so it
   * hears its own announcement, too.
   */
  giveBack(listening: boolean, now: number): Handoff {
    if (!this.active) this.#since = now;
    const turn = now - this.#offeredAt;
    const isLast = now - this.#since > LONGEST_STAY;
    const isOver = turn > SHORTEST_TURN && (this.#left <= 0 || turn > LONGEST_TURN);
    if (!isLast && !isOver) {
      this.#left--;
      return "passLocal";
    }
    // A release does not tell whether another process wants the lock. Often none does, so the back-off is short.
    const length = isLast || this.#noTaker || this.#offeredAt === NEVER ? 0 : turn;
    this.#backoff = Math.min(Math.max(2 * length, SHORTEST_BACKOFF), this.#longestBackoff);
    this.#beginTurn(now);
    if (listening) this.#ownUntil = now + 2 * LONGEST_TURN;
    return isLast ? "release" : "offer";
  }

  /** The lock was not given back after all, so it was not announced either. */
  unannounced(): void {
    this.#ownUntil = NEVER;
  }

  /** So many other processes go first. */
  backOff(others: number, now: number): void {
    this.#ahead = others;
    this.#noTaker = true;
    this.#wait(now);
  }

  #wait(now: number): void {
    this.tryIn(Math.min(this.#ahead * this.#backoff, LONGEST_STAY), now);
  }

  #beginTurn(now: number): void {
    this.#offeredAt = now;
    this.#left = TURN;
  }
}
