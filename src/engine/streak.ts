/**
 * How long a lock may go from hand to hand inside one process (lock cohorting: Dice, Marathe and Shavit, "Lock
 * Cohorting", 2012), and how others get their turn then: long enough to be cheap, and never so long that they starve.
 */
import type { Clock } from "../base/clock.js";

/** Hand-overs in a row before others are asked; no more than waited here when the lock came. */
const LONGEST_RUN = 16;
/** Milliseconds for which they are not asked in any case: it costs about as much to wake them all. */
const SHORTEST_TIME = 8;
/** Milliseconds after which they are asked before each hand-over. */
const LONGEST_TIME = 50;
/** Milliseconds after which the lock is released all the same: who listens at a replica is not counted when asked. */
const LONGEST_STREAK = 1_000;
/**
 * Milliseconds that a process waits at least for each of those who have heard of its release and go before it. As a rule
 * it is twice as long as its own turn was: theirs will be alike.
 */
const SHORTEST_COURTESY = 4;
/** No more of them are waited for. */
const MOST_BEFORE = 16;
/** Milliseconds in which a process hears of its own offer, too, if it ever does. */
const ECHO = 100;

/** What is to become of a lock that is given back: handed over, offered to others first, or released to everybody. */
export type Passage = "pass" | "offer" | "release";

export class Streak {
  readonly #clock: Clock;
  readonly #longestCourtesy: number;
  /** When the lock came to this process; undefined before anybody here knows. */
  #since: number | undefined;
  /** When others were last asked. */
  #askedAt = 0;
  #left = 0;
  /** So many processes have waited longer for their turn than this one. */
  #before = 0;
  /** Milliseconds for each of them. */
  #courtesy = SHORTEST_COURTESY;
  /** None of those who went before was heard of: somebody listens who never comes. */
  #deserted = false;
  /** Until then one message is of a release that this process has let others hear of. */
  #echoUntil = 0;

  /** `marked`: the server has to hear soon of who waits, so nobody is waited for longer than the least. */
  constructor(clock: Clock, marked: boolean) {
    this.#clock = clock;
    this.#longestCourtesy = marked ? SHORTEST_COURTESY : LONGEST_TIME;
  }

  /** The lock came from outside; so many wait for it here. */
  begin(waiters: number): void {
    this.#since = this.#clock.mono();
    this.#run(waiters, this.#since);
  }

  /** Others have been asked. */
  asked(waiters: number): void {
    const now = this.#clock.mono();
    const turn = this.#deserted || this.#askedAt === 0 ? 0 : now - this.#askedAt;
    this.#courtesy = Math.min(Math.max(2 * turn, SHORTEST_COURTESY), this.#longestCourtesy);
    this.#run(waiters, now);
  }

  next(): Passage {
    const now = this.#clock.mono();
    this.#since ??= now;
    if (now - this.#since > LONGEST_STREAK) return "release";
    const time = now - this.#askedAt;
    if (time > SHORTEST_TIME && (this.#left <= 0 || time > LONGEST_TIME)) return "offer";
    this.#left--;
    return "pass";
  }

  /** So many others go first. Returns the milliseconds for which they are waited for. */
  yield(others: number): number {
    this.#before = Math.min(others, MOST_BEFORE);
    this.#deserted = true;
    return this.#before * this.#courtesy;
  }

  /** A release was heard of, so one more has had its turn. As {@link yield}; undefined if none was to go first. */
  heard(): number | undefined {
    this.#deserted = false;
    if (this.#before === 0) return undefined;
    this.#before--;
    return this.#before * this.#courtesy;
  }

  /** It is this process's turn. */
  endCourtesy(): void {
    this.#before = 0;
  }

  /** What is offered is announced to everybody, this process too. */
  expectEcho(): void {
    this.#echoUntil = this.#clock.mono() + ECHO;
  }

  expectNothing(): void {
    this.#echoUntil = 0;
  }

  /**
   * A message has come. Returns the milliseconds for which the one that was expected may pass for that: its like may come
   * from somebody else, and the offer may never have been made.
   */
  echo(): number {
    const ms = this.#echoUntil - this.#clock.mono();
    this.#echoUntil = 0;
    return Math.max(ms, 0);
  }

  #run(waiters: number, now: number): void {
    this.#askedAt = now;
    this.#left = Math.min(waiters, LONGEST_RUN);
  }
}
