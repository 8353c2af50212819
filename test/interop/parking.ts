/** Calls that wait, each of a client that listens to the same name by no other call. */
import { type Watched, watch } from "../faults/harness.js";
import { until } from "../support/index.js";

export class Parking {
  readonly #listeners: () => Promise<number>;
  readonly #settle: () => Promise<unknown>;
  readonly #parked: Watched<unknown>[] = [];

  /** @param settle resolves when what was under way on both sides has come through */
  constructor(listeners: () => Promise<number>, settle: () => Promise<unknown>) {
    this.#listeners = listeners;
    this.#settle = settle;
  }

  /** Calls, and resolves when the call waits: its client has begun to listen, and has looked once more since. */
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

  /** Resolves when so many clients listen; those whose call is over take a moment to leave. */
  async untilListening(count: number): Promise<void> {
    await until(`${count} listen`, async () => (await this.#listeners()) === count);
  }

  /** These calls wait still, after all that was under way has come through. */
  async stillWait(...calls: readonly Watched<unknown>[]): Promise<void> {
    await this.#settle();
    const over = calls.filter(({ state }) => state !== "pending");
    if (over.length > 0) throw new Error(`${over.length} of ${calls.length} calls do not wait any more`);
  }
}
