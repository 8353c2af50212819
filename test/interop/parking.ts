/** Waiting calls, each of a client that listens to the name for no other call. */
import { type Watched, watch } from "../faults/harness.js";
import { until } from "../support/index.js";

export class Parking {
  readonly #listeners: () => Promise<number>;
  readonly #settle: () => Promise<unknown>;
  readonly #parked: Watched<unknown>[] = [];

  /** @param settle resolves when everything that was under way on both sides has arrived */
  constructor(listeners: () => Promise<number>, settle: () => Promise<unknown>) {
    this.#listeners = listeners;
    this.#settle = settle;
  }

  /** Makes a call, and resolves when it waits: its client has begun to listen, and has asked once more since. */
  async park<T>(call: () => Promise<T>): Promise<Watched<T>> {
    const before = this.#parked.filter(({ state }) => state === "pending").length;
    await this.untilListening(before);
    const watched = watch(call());
    const listens = async () => watched.state !== "pending" || (await this.#listeners()) > before;
    await until("one more listens", listens);
    await this.#settle();
    if (watched.state !== "pending") throw new Error("it did not wait", { cause: watched.error });
    this.#parked.push(watched);
    return watched;
  }

  /** Resolves when that many clients listen; a client whose call is over takes a moment to unsubscribe. */
  async untilListening(count: number): Promise<void> {
    await until(`${count} listen`, async () => (await this.#listeners()) === count);
  }

  /** Checks that these calls still wait when everything that was under way has arrived. */
  async stillWait(...calls: readonly Watched<unknown>[]): Promise<void> {
    await this.#settle();
    const over = calls.filter(({ state }) => state !== "pending");
    if (over.length > 0) throw new Error(`${over.length} of ${calls.length} calls do not wait any more`);
  }
}
