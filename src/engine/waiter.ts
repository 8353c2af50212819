/** One call on its way through the engine: what it wants, and how it stands in its line. */
import type { Contender } from "./contender.js";
import { Wait, type WaitOptions } from "./wait.js";

export class Waiter extends Wait {
  /** In its line. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  readonly contender: Contender<unknown>;
  /** It was told to try, whether it is the first of its line or not. */
  hinted = false;
  /** It was told to try because of what another's grant left over; see {@link Line.granted}. */
  fed = false;
  /** It has what it wants. */
  granted = false;
  /** Ends its own subscription, if it has one. */
  unsubscribe: (() => void) | undefined;
  /** Whether the `waiting` event was sent. */
  announced = false;

  constructor(contender: Contender<unknown>, options: WaitOptions) {
    super(options);
    this.contender = contender;
  }

  /** Wakes it, and a try is due. */
  hint(): void {
    this.hinted = true;
    this.resume();
  }
}
