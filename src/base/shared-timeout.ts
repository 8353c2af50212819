/** Many time-outs of one length on one timer: a timer for each command would cost more than the command. */
import type { Clock } from "./clock.js";
import { type Item, List } from "./list.js";

export interface Timed extends Item {
  /** Monotonic milliseconds; set by the limit. */
  endsAt: number;
  /** The limit is over. */
  expire(): void;
}

/** One that does nothing but to call back. */
export class TimedCallback implements Timed {
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  endsAt = 0;
  readonly expire: () => void;

  constructor(expire: () => void) {
    this.expire = expire;
  }
}

export class SharedTimeout<T extends Timed> {
  readonly ms: number;
  /** In the order they end. */
  readonly running: List<T> = new List();
  readonly #clock: Clock;
  readonly #outside: (fn: () => void) => void;
  #armed = false;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ms: number, outside: (fn: () => void) => void) {
    this.#clock = clock;
    this.ms = ms;
    this.#outside = outside;
  }

  /** Expires the item after the limit, unless it is taken out of `running` before. */
  start(item: T): void {
    item.endsAt = this.#clock.mono() + this.ms;
    this.running.add(item);
    if (!this.#armed) this.#arm(this.ms);
  }

  /** Nothing expires any more. */
  close(): void {
    this.#armed = true;
    this.#cancel?.();
  }

  #arm(ms: number): void {
    this.#armed = true;
    this.#outside(() => {
      this.#cancel = this.#clock.after(Math.max(1, Math.ceil(ms)), () => this.#check());
    });
  }

  /** The timer is left to fire when nothing runs: stopping and starting it is what this class saves. */
  #check(): void {
    const now = this.#clock.mono();
    // One that expires may be started again. It is armed for the first of those that run, which may end much sooner.
    let { first } = this.running;
    while (first && first.endsAt <= now) {
      this.running.remove(first);
      first.expire();
      first = this.running.first;
    }
    this.#armed = false;
    if (first) this.#arm(first.endsAt - now);
  }
}
