/** Permits of a `run`. The close of the client gives them back, because nobody else can. */
import { LockLostError, type LossReason } from "../base/errors.js";
import type { SharedNumber } from "./number.js";

export class RunningPermits {
  declare readonly id?: never;
  readonly number: SharedNumber;
  readonly #count: number;
  /** When they were taken, in monotonic milliseconds. */
  readonly #since: number;
  #lost: LockLostError | undefined;

  constructor(number: SharedNumber, count: number) {
    this.number = number;
    this.#count = count;
    this.#since = number.env.clock.mono();
    number.permits.live.add(this);
  }

  get held(): number {
    return this.number.env.clock.mono() - this.#since;
  }

  lose(reason: LossReason): void {
    this.#lost = new LockLostError(this.number.lockName, reason, this.number.env.clock.wall());
    this.number.emit("lost", { reason, held: this.held });
    void this.#giveBack();
  }

  /** Gives them back, unless they are lost: resolves with the loss then. */
  async end(): Promise<LockLostError | undefined> {
    const { held } = this;
    if (!this.#lost) await this.#giveBack(() => this.number.emit("released", { held }));
    return this.#lost;
  }

  async #giveBack(done?: () => void): Promise<void> {
    const { number } = this;
    number.permits.live.remove(this);
    await number.add(this.#count, "", done).catch((cause: unknown) => number.emit("error", { cause }));
  }
}
