/** The latch: a gate that opens for all when it has been counted down to zero. */
import { checkInteger, checkOptions, checkWait } from "../base/arguments.js";
import { latchCountDown } from "../scripts/generated.js";
import { readNumber } from "../scripts/inspected.js";
import type { ScriptCall } from "../scripts/script.js";
import { checkNumber, type SharedNumber } from "./number.js";
import { type Attempt, Request } from "./request.js";
import type { SignalOptions } from "./semaphore.js";

/** The message by which Redisson tells waiters that the count is set. */
const NEW_COUNT = "1";

/** Wants the opening, which all waiters get. */
class Opening extends Request<true> {
  protected override get attempt(): ScriptCall {
    return this.wanted.look();
  }

  protected override read(reply: unknown): Attempt {
    return { isGranted: readNumber(reply).permits <= 0 };
  }

  protected override accept(): true {
    return true;
  }

  protected override undo(): undefined {
    // Tries take nothing.
  }
}

/**
 * Opens for all waiters, in all processes, when it has been counted down as often as was set. It can be set again once
 * it is open; a waiter that has not noticed the opening by then waits for the next one.
 * @example
 * const ready = client.getCountDownLatch("ready");
 * await ready.trySetCount(3);
 * await ready.countDown();
 * const isOpen = await ready.await(5_000);
 */
export class CountDownLatch {
  /** The name as it was asked for: without the prefix. */
  readonly name: string;
  readonly #number: SharedNumber;

  /** Made by `LockClient.getCountDownLatch`. @internal */
  constructor(number: SharedNumber) {
    checkNumber(number, "getCountDownLatch");
    this.name = number.lockName;
    this.#number = number;
  }

  /**
   * Sets the count, unless one is set. Resolves with whether this call set it. A count of 0 is set, too, until the next
   * countdown.
   * @throws as {@link countDown}
   */
  async trySetCount(count: number): Promise<boolean> {
    checkInteger(count, "count", 0);
    return this.#number.trySet(count, NEW_COUNT);
  }

  /**
   * Counts down by one; at zero the latch opens. Does nothing to an open latch.
   * @throws UNAVAILABLE if Redis gives no answer in time; the call goes on in the background, so do not repeat it;
   * UNSUPPORTED, WRONG_DATA, CLIENT_CLOSED
   */
  async countDown(): Promise<void> {
    this.#number.env.assertOpen(this.name);
    await this.#number.give((keys, once) => latchCountDown.with(keys, once));
  }

  /**
   * Waits until the latch is open, for at most `wait` milliseconds (without limit if absent). Resolves with whether the
   * latch is open. A latch that was never set is open.
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, CLIENT_CLOSED; `signal.reason`
   */
  async await(wait?: number, options?: SignalOptions): Promise<boolean> {
    const limit = checkWait(wait) ?? Number.POSITIVE_INFINITY;
    const { signal } = checkOptions(options, ["signal"], "await");
    return (await new Opening(this.#number, limit, signal).start()) ?? false;
  }

  /**
   * How often the latch is still to be counted down; 0 when it is open.
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, CLIENT_CLOSED
   */
  async getCount(): Promise<number> {
    return (await this.#number.inspect()).permits;
  }
}
