/**
 * The only wait loop of the library, for every kind of lock and synchronizer.
 *
 * It tries; refused, it listens to the channel and tries again once the server has confirmed that, so that no release
 * falls between; then it sleeps until a message, the holder's TTL, or `pollCap`. It knows nothing of owners, holds or
 * scripts: a {@link Contender} does the trying, and cleans up after a try whose outcome nobody waits for any more.
 */
import type { Clock } from "../base/clock.js";
import {
  ClientClosedError,
  isLockError,
  RedisUnavailableError,
  UnsupportedServerError,
} from "../base/errors.js";
import { type Item, List } from "../base/list.js";
import type { Router } from "../pubsub/router.js";
import type { Link } from "../redis/link.js";
import { Line } from "./line.js";
import { TIME_IS_UP, Waiter } from "./waiter.js";

/** What a try came to. `ttl`: ms until the holder's lease ends, -1 if it has no end, 0 to try again at once. */
export type Attempt<G> =
  | { readonly granted: true; readonly value: G; readonly lease: number }
  | { readonly granted: false; readonly ttl: number };

/** One call that wants something, as the engine sees it. */
export interface Contender<G> {
  readonly lockName: string;
  /** Where releases are announced; names the line to stand in. */
  readonly channel: string;
  /** False while it is another's turn (of the same owner). */
  admitted(): boolean;
  /** True if it needs no place in the line: its owner has the lock already. */
  reenters(): boolean;
  /** Tries once. Rejects UNAVAILABLE without an answer within `within` milliseconds. */
  attempt(within: number): Promise<Attempt<G>>;
  /** The call begins; `resume` is to be called whenever `admitted` or `reenters` may have changed. */
  enter(resume: () => void): void;
  /** The call has to wait; called once. */
  waiting(): void;
  /** The call is over. With `taken` false nobody receives what it was or is granted: it is to be undone. */
  leave(taken: boolean): void;
}

export interface EngineOptions {
  readonly link: Link;
  readonly router: Router;
  readonly clock: Clock;
  readonly pollCap: number;
  readonly random: () => number;
}

/** Added to a TTL before the next try: PTTL is truncated, and a timer may fire a millisecond early. */
const MARGIN = 2;
const SHORTEST_SLEEP = 5;
const LONGEST_JITTER = 50;

/** A call's place in the list of all, beside the one that its waiter may have in a line. */
class Call implements Item {
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  readonly waiter: Waiter;

  constructor(waiter: Waiter) {
    this.waiter = waiter;
  }
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #lines = new Map<string, Line>();
  /** Calls under way. */
  readonly #calls = new List<Call>();
  readonly #stopListening: () => void;
  #onIdle: (() => void) | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#stopListening = options.link.onReady(() => {
      for (const line of this.#lines.values()) line.hint();
    });
  }

  /**
   * Waits until the contender is granted what it wants; undefined when `wait` milliseconds are over first. With
   * `wait` 0 it tries once, past those that wait.
   */
  async acquire<G>(
    contender: Contender<G>,
    wait: number,
    signal: AbortSignal | undefined,
  ): Promise<G | undefined> {
    const { clock, link } = this.#options;
    const waiter = new Waiter({ lockName: contender.lockName, clock, wait, signal });
    const call = new Call(waiter);
    this.#calls.add(call);
    let taken = false;
    try {
      contender.enter(() => waiter.resume());
      const granted =
        wait === 0 ? await this.#once(contender, waiter) : await this.#persist(contender, waiter, wait);
      taken = granted !== undefined;
      return granted;
    } catch (reason) {
      if (reason !== TIME_IS_UP) throw reason;
      if (!waiter.seasoned || link.away) throw new RedisUnavailableError(contender.lockName);
      return undefined;
    } finally {
      waiter.dispose();
      contender.leave(taken);
      this.#calls.remove(call);
      if (!this.#calls.first) this.#onIdle?.();
    }
  }

  /** Rejects everybody who waits; resolves when all have gone. */
  close(): Promise<void> {
    this.#stopListening();
    const idle = this.#calls.first
      ? new Promise<void>((resolve) => {
          this.#onIdle = resolve;
        })
      : Promise.resolve();
    for (const { waiter } of this.#calls.all()) waiter.end(new ClientClosedError(waiter.lockName));
    return idle;
  }

  /** One try, past the line; not at all when it is another's turn. */
  async #once<G>(contender: Contender<G>, waiter: Waiter): Promise<G | undefined> {
    while (contender.admitted()) {
      const attempt = await waiter.during(contender.attempt(this.#options.link.commandTimeout));
      if (attempt.granted) return attempt.value;
      if (attempt.ttl !== 0) return undefined;
    }
    return undefined;
  }

  async #persist<G>(contender: Contender<G>, waiter: Waiter, wait: number): Promise<G> {
    const line = this.#line(contender);
    let undecided = false;
    try {
      for (;;) {
        if (!this.#mayTry(contender, waiter, line)) {
          this.#announce(contender, waiter);
          waiter.seasoned = true;
          await waiter.park();
          continue;
        }
        const quiet = contender.reenters() ? 0 : line.quiet;
        if (quiet > 0) {
          await waiter.park(quiet);
          continue;
        }
        undecided = true;
        line.trying();
        const attempt = await waiter.during(this.#try(contender, waiter, wait));
        undecided = false;
        if (attempt.granted) {
          if (line.isHead(waiter)) line.granted(Math.min(attempt.lease, this.#options.pollCap));
          return attempt.value;
        }
        if (attempt.ttl === 0) {
          line.hint();
          continue;
        }
        waiter.seasoned = true;
        this.#announce(contender, waiter);
        line.refused(this.#sleep(attempt.ttl));
      }
    } finally {
      line.leave(waiter, undecided);
      if (--line.calls === 0) this.#lines.delete(contender.channel);
    }
  }

  /** True when it is this call's turn, and it re-enters or heads the line. */
  #mayTry(contender: Contender<unknown>, waiter: Waiter, line: Line): boolean {
    if (!contender.admitted()) return false;
    if (contender.reenters()) return true;
    line.enter(waiter);
    return line.isHead(waiter);
  }

  /** One try; a call that has waited before takes silence for a refusal, and goes on when Redis is back. */
  #try<G>(contender: Contender<G>, waiter: Waiter, wait: number): Promise<Attempt<G>> {
    const { commandTimeout } = this.#options.link;
    if (!waiter.seasoned) return contender.attempt(Math.min(commandTimeout, wait));
    return contender.attempt(commandTimeout).catch((error: unknown) => {
      if (!isLockError(error, "UNAVAILABLE")) throw error;
      return { granted: false, ttl: -1 };
    });
  }

  #announce(contender: Contender<unknown>, waiter: Waiter): void {
    if (waiter.announced) return;
    waiter.announced = true;
    contender.waiting();
  }

  #sleep(ttl: number): number {
    const { pollCap, random } = this.#options;
    if (ttl < 0) return pollCap;
    const jitter = random() * Math.min(ttl / 10, LONGEST_JITTER);
    return Math.min(pollCap, Math.max(SHORTEST_SLEEP, ttl + MARGIN + jitter));
  }

  #line(contender: Contender<unknown>): Line {
    const { channel, lockName } = contender;
    let line = this.#lines.get(channel);
    if (!line) {
      const { router, clock } = this.#options;
      const refused = (error: unknown) =>
        new UnsupportedServerError(
          lockName,
          `the server forbids the channel: ${error instanceof Error ? error.message : "unknown error"}`,
        );
      line = new Line({ channel, router, clock, refused });
      this.#lines.set(channel, line);
    }
    line.calls++;
    return line;
  }
}
