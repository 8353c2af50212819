/** Many time-outs of one length on one timer: a timer for each command would cost more than the command. */
import type { Clock } from "./clock.js";
import { type Item, List } from "./list.js";
import { outside } from "./outside.js";
import { noop } from "./work.js";

export interface Timed extends Item {
  /** Monotonic milliseconds; {@link SharedTimeout} sets it. */
  endsAt: number;
  /** Called when the time is over. */
  expire(): void;
}

export class SharedTimeout<T extends Timed> {
  readonly ms: number;
  /** The items whose time runs, in the order in which it ends. */
  readonly running: List<T> = new List();
  readonly #clock: Clock;
  /** Stops the timer; undefined while none runs. */
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.ms = ms;
  }

  /** Expires the item after `ms`, unless it is taken out of `running` before; `now` in monotonic milliseconds. */
  start(item: T, now: number = this.#clock.mono()): void {
    item.endsAt = now + this.ms;
    this.running.add(item);
    if (!this.#cancel) this.#arm(this.ms);
  }

  /** From now on nothing expires. */
  close(): void {
    this.#cancel?.();
    this.#cancel = noop;
  }

  #arm(ms: number): void {
    outside(() => {
      this.#cancel = this.#clock.after(Math.max(1, Math.ceil(ms)), () => this.#check());
    });
  }

  /**
   * The timer is not stopped when no item is left, because this class is there to save stopping and starting timers.
   */
  #check(): void {
    const now = this.#clock.mono();
    // `expire` may start the item again, behind the others. So the timer is armed after the loop, for the first item.
    let { first } = this.running;
    while (first && first.endsAt <= now) {
      this.running.remove(first);
      first.expire();
      first = this.running.first;
    }
    this.#cancel = undefined;
    if (first) this.#arm(first.endsAt - now);
  }
}
