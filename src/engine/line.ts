/**
 * The waiters of one process for one name, first come first served. Only the head talks to Redis, so that ten thousand
 * waiters cost one server try for each release.
 */
import type { Clock } from "../base/clock.js";
import { List } from "../base/list.js";
import type { Router } from "../pubsub/router.js";
import type { Waiter } from "./waiter.js";

export interface LineOptions {
  readonly channel: string;
  readonly router: Router;
  readonly clock: Clock;
  /** The server forbids the channel: nobody here can be woken. */
  readonly refused: (error: unknown) => unknown;
}

export class Line {
  /** Calls that use this line, whether they stand in it yet or not; kept by the engine. */
  calls = 0;
  readonly #options: LineOptions;
  /** In order of arrival. */
  readonly #waiters = new List<Waiter>();
  /** Something may have changed since the last try began. */
  #hinted = true;
  /** Until then no try is due unless there is a hint: the lock is known to be held. */
  #quietUntil = 0;
  #unsubscribe: (() => void) | undefined;
  /** The server has confirmed the subscription, so a release since then is a hint. */
  #listening = false;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  isHead(waiter: Waiter): boolean {
    return this.#waiters.first === waiter;
  }

  enter(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  /** `undecided`: the waiter leaves while a try of its own is in flight. */
  leave(waiter: Waiter, undecided: boolean): void {
    const wasHead = this.isHead(waiter);
    this.#waiters.remove(waiter);
    if (!wasHead) return;
    if (undecided) this.#hinted = true;
    if (this.#waiters.first) this.#waiters.first.resume();
    else this.#stop();
  }

  /** Milliseconds for which no try is due; 0 when one is. */
  get quiet(): number {
    if (this.#hinted) return 0;
    return Math.max(0, this.#quietUntil - this.#options.clock.mono());
  }

  /** A try begins: hints up to here are spent on it. */
  trying(): void {
    this.#hinted = false;
  }

  /** The head has the lock now, for at most `ms` unless renewed. Without a subscription the next one has to look. */
  granted(ms: number): void {
    if (this.#listening) this.#quietUntil = this.#options.clock.mono() + ms;
    else this.#hinted = true;
  }

  /** The lock is held by another: no try for `ms` but on a hint. */
  refused(ms: number): void {
    this.#quietUntil = this.#options.clock.mono() + ms;
    this.#unsubscribe ??= this.#subscribe();
  }

  /** Something may have changed: the head tries again. */
  hint(): void {
    this.#hinted = true;
    this.#waiters.first?.resume();
  }

  #subscribe(): () => void {
    const { router, channel, refused } = this.#options;
    return router.subscribe(channel, {
      hint: () => {
        this.#listening = true;
        this.hint();
      },
      refused: (error) => {
        for (const waiter of this.#waiters.all()) waiter.end(refused(error));
      },
    });
  }

  #stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#listening = false;
  }
}
