/** Permits that are held while a function runs. */
import { LockLostError, type LossReason } from "../base/errors.js";
import type { LiveSet } from "../base/live-set.js";
import type { Live } from "./kept-permit.js";
import type { SharedNumber } from "./number.js";

/** Permits of a `run`. The close of the client gives them back, because nobody else can. */
export class RunningPermits implements Live {
  lost: LockLostError | undefined;
  readonly number: SharedNumber;
  readonly #count: number;
  readonly #live: LiveSet<Live>;
  /** When they were taken, in monotonic milliseconds. */
  readonly #since: number;

  constructor(number: SharedNumber, count: number, live: LiveSet<Live>) {
    this.number = number;
    this.#count = count;
    this.#live = live;
    this.#since = number.env.clock.mono();
    live.add(this);
  }

  get held(): number {
    return this.number.env.clock.mono() - this.#since;
  }

  lose(reason: LossReason): void {
    this.lost = new LockLostError(this.number.lockName, reason, this.number.env.clock.wall());
    this.number.emit("lost", { reason, held: this.held });
    void this.#ended(this.number.add(this.#count, ""));
  }

  async end(): Promise<void> {
    if (!this.lost) await this.#ended(this.number.giveBack(this.#count, this.held));
  }

  async #ended(given: Promise<void>): Promise<void> {
    this.#live.remove(this);
    await given.catch((cause: unknown) => this.number.emit("error", { cause }));
  }
}
