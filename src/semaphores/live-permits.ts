/** What a client has of semaphores and must give back before it is closed: kept permits, and the permits of each `run`. */
import { LockLostError, type LossReason } from "../base/errors.js";
import { LiveSet } from "../base/live-set.js";
import type { Env } from "../env.js";
import type { SharedNumber } from "./number.js";
import type { KeptPermit } from "./permit.js";

export class LivePermits {
  readonly live: LiveSet<KeptPermit | RunningPermits>;
  readonly #env: Env;
  /** The releases under way, by {@link permitKey}; each resolves with whether the permit was out. */
  readonly returning: Map<string, Promise<boolean>> = new Map();

  constructor(env: Env) {
    this.#env = env;
    this.live = new LiveSet(env);
  }

  /** The permit of this id, if this client looks after it. */
  kept(number: SharedNumber, id: string): KeptPermit | undefined {
    return this.live.get(permitKey(number, id)) as KeptPermit | undefined;
  }

  /** Notes a release that is under way; once the client closes, for good: a later call for it has nobody to ask. */
  returns(number: SharedNumber, id: string, work: Promise<boolean>): void {
    const where = permitKey(number, id);
    this.returning.set(where, work);
    const done = () => this.#env.closed || this.returning.delete(where);
    work.then(done, done);
  }
}

/** Has the key of the semaphore in it, because a user may ask one semaphore for another's permit. */
export function permitKey({ key }: SharedNumber, id: string): string {
  return `${id}${key}`;
}

/** Permits of a `run`. The close of the client gives them back, because nobody else can. */
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
    number.env.permits.live.add(this);
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
    number.env.permits.live.remove(this);
    await number.add(this.#count, "", done).catch((cause: unknown) => number.emit("error", { cause }));
  }
}
