/** Permits that are held while a function runs. */
import { LockLostError, type LossReason } from "../base/errors.js";
import type { LiveSet } from "../locks/live-set.js";
import type { Live } from "./kept-permits.js";
import type { SharedNumber } from "./number.js";

/** Permits of a `run`, which a close gives back: nobody else could. */
export class RunningPermits implements Live {
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  lost: LockLostError | undefined;
  readonly number: SharedNumber;
  readonly #release: () => Promise<void>;
  readonly #live: LiveSet<Live>;
  /** When they were taken, in monotonic milliseconds. */
  readonly #since: number;

  constructor(number: SharedNumber, release: () => Promise<void>, live: LiveSet<Live>) {
    this.number = number;
    this.#release = release;
    this.#live = live;
    this.#since = number.env.clock.mono();
    live.add(this);
  }

  get held(): number {
    return this.number.env.clock.mono() - this.#since;
  }

  lose(reason: LossReason): void {
    this.lost = new LockLostError(this.number.name, reason, this.number.env.clock.wall());
    this.number.emit("lost", { reason });
    void this.#giveBack();
  }

  async end(): Promise<void> {
    if (this.lost) return;
    if (await this.#giveBack()) this.number.emit("released", {});
  }

  /** Resolves with whether Redis has confirmed it in time. */
  async #giveBack(): Promise<boolean> {
    try {
      const given = this.#release();
      this.#live.remove(this);
      await given;
      return true;
    } catch (cause) {
      this.number.emit("error", { cause });
      return false;
    }
  }
}
