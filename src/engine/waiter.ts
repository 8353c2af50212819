/** One call on its way through the engine: what it wants, and how it stands in its line. */
import { UnsupportedServerError } from "../base/errors.js";
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

/**
 * Listens to what wakes a waiter, on behalf of those that `whom` tells: where the server forbids it, none of them can be
 * woken, and their calls reject UNSUPPORTED. Returns the way to stop.
 */
export function listen({ contender }: Waiter, hint: () => void, whom: () => readonly Waiter[]): () => void {
  const refused = (error: unknown) => {
    const reason = error instanceof Error ? error.message : "unknown error";
    const message = `the server forbids the channel: ${reason}`;
    for (const waiter of whom()) waiter.end(new UnsupportedServerError(contender.lockName, message));
  };
  return contender.listen({ hint, refused });
}

/** Lets a waiter listen to what wakes it alone. */
export function listenAlone(waiter: Waiter): void {
  const hint = () => waiter.hint();
  waiter.unsubscribe ??= listen(waiter, hint, () => [waiter]);
}
