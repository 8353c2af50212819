/**
 * When the first waiter of a process tries, and what becomes of a lock that this process gives back: handed to the next
 * one here, offered to other processes first, or released. Lock cohorting (Dice, Marathe and Shavit, "Lock Cohorting",
 * 2012): long enough inside a process to be cheap, never so long that others starve.
 *
 * Pure: it is told what happened and when, and answers with what is to be done. It neither sends nor sleeps. All times are
 * milliseconds, moments those of a monotonic clock.
 */

/** So many hand-overs are a turn, whoever waits: processes are to have the lock as often as each other. */
const TURN = 4;
/**
 * What is shorter than this is not worth a message: others are not asked (it costs about as much to wake them all), waiters
 * behind a holder of this process do not subscribe, and an empty queue is kept.
 */
export const SHORTEST_TURN = 8;
/** After so long others are asked before each hand-over; nobody is backed off for longer. */
const LONGEST_TURN = 50;
/**
 * After so long the lock is released all the same: whoever listens at a replica is not counted when others are asked. Nobody
 * backs off for longer, however many go first.
 */
const LONGEST_STAY = 1_000;
/** For each of those that go first at least so long; twice this process's own turn if that is longer. */
const SHORTEST_BACKOFF = 4;

const NEVER = Number.NEGATIVE_INFINITY;

export type Handoff = "passLocal" | "offer" | "release";

export class HandoffPolicy {
  readonly #longestBackoff: number;
  /** When the lock came to this process; {@link NEVER} while no lock has gone from hand to hand here. */
  #since = NEVER;
  /** When others were last asked; {@link NEVER} before. */
  #offeredAt = NEVER;
  /** Hand-overs until they are asked again. */
  #left = 0;
  /** So many processes have waited longer than this one. */
  #ahead = 0;
  /** For each of them. */
  #backoff = SHORTEST_BACKOFF;
  /** None of those ahead was heard of: somebody listens who never comes. */
  #noTaker = false;
  /** Until then one message may be this process's own offer. */
  #ownUntil = NEVER;
  /** Something may have changed since the last try began. */
  #wanted = true;
  /** When that calls for a try. */
  #tryAt = NEVER;
  /** Until then no try is due unless something changes: the lock is known to be held. */
  #quietUntil = NEVER;

  /** `advertised`: the server has to hear soon of who waits, so nobody is backed off for longer than the least. */
  constructor(advertised: boolean) {
    this.#longestBackoff = advertised ? SHORTEST_BACKOFF : LONGEST_TURN;
  }

  /** Whether the lock has gone from hand to hand here. */
  get active(): boolean {
    return this.#since !== NEVER;
  }

  /** Whether others go first. */
  get backsOff(): boolean {
    return this.#ahead > 0;
  }

  /** Milliseconds until the first waiter's next try is due; 0 when it is. */
  due(now: number): number {
    return Math.max(0, (this.#wanted ? this.#tryAt : this.#quietUntil) - now);
  }

  /** The first waiter tries: what happened before is known to that try. */
  trying(): void {
    this.#wanted = false;
    this.#tryAt = NEVER;
  }

  /** The first waiter is to try in `ms`, unless it has reason to do so before. */
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

  /** Something may have changed. `backoff`: milliseconds that the waiter itself lets others go first. */
  changed(backoff: number, now: number): void {
    this.#noTaker = false;
    if (this.#ahead > 0) {
      // One of those ahead has had its turn.
      this.#ahead--;
      this.#wait(now);
    } else {
      // Never postpone a scheduled try.
      this.tryIn(this.#wanted ? Math.min(backoff, this.#tryAt - now) : backoff, now);
    }
  }

  /** A message came. It may be this process's own offer, or another's release that looks the same: that counts later. */
  message(backoff: number, now: number): void {
    const own = this.#ownUntil - now;
    this.#ownUntil = NEVER;
    if (own <= 0) this.changed(backoff, now);
    else if (!this.#wanted) this.tryIn(own, now);
  }

  /** The lock came from outside. */
  arrived(now: number): void {
    this.#since = now;
    this.#beginTurn(now);
  }

  /** The first waiter of this process has the lock. */
  granted(): void {
    this.#ahead = 0;
  }

  /**
   * The lock is about to be given back, and somebody waits here. `listening`: this process will hear of it, too, if it is
   * announced.
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
    // At a release nobody knows of a taker: often there is none, and the waiters here are to lose little by it.
    const length = isLast || this.#noTaker || this.#offeredAt === NEVER ? 0 : turn;
    this.#backoff = Math.min(Math.max(2 * length, SHORTEST_BACKOFF), this.#longestBackoff);
    this.#beginTurn(now);
    if (listening) this.#ownUntil = now + 2 * LONGEST_TURN;
    return isLast ? "release" : "offer";
  }

  /** So many others go first. */
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
