/** What a client has of semaphores and must give back before it is closed: kept permits, and the permits of each `run`. */
import { LockLostError, type LossReason } from "../base/errors.js";
import type { LiveSet } from "../base/live-set.js";
import type { Env } from "../env.js";
import type { KeptPermit } from "./kept-permit.js";
import type { SharedNumber } from "./number.js";

/** A permit, by its semaphore and its id. */
type Named = Pick<KeptPermit, "number" | "id">;

export class LivePermits {
  readonly live: LiveSet<KeptPermit | RunningPermits>;
  /** The releases under way, by {@link permitKey}; each resolves with whether the permit was out. */
  readonly #returning = new Map<string, Promise<boolean>>();

  constructor(env: Env) {
    this.live = env.liveSet();
  }

  keep(permit: KeptPermit): void {
    this.live.add(permit, permitKey(permit));
  }

  drop(permit: KeptPermit): void {
    this.live.remove(permit, permitKey(permit));
  }

  /** The permit of this id, if this client looks after it. */
  kept(permit: Named): KeptPermit | undefined {
    return this.live.get(permitKey(permit)) as KeptPermit | undefined;
  }

  /** The release of this permit that is under way, if there is one. */
  returning(permit: Named): Promise<boolean> | undefined {
    return this.#returning.get(permitKey(permit));
  }

  /** The close of the client gives it back. */
  closed(permit: Named): void {
    this.#returning.set(permitKey(permit), Promise.resolve(true));
  }

  /** Notes a release that is under way. */
  returns(permit: Named, work: Promise<boolean>): void {
    const where = permitKey(permit);
    this.#returning.set(where, work);
    const done = () => this.#returning.delete(where);
    work.then(done, done);
  }
}

/** Has the key of the semaphore in it, because a user may ask one semaphore for another's permit. */
function permitKey({ number, id }: Named): string {
  return `${id}${number.key}`;
}

/** Permits of a `run`. The close of the client gives them back, because nobody else can. */
export class RunningPermits {
  lost: LockLostError | undefined;
  declare readonly id?: never;
  readonly number: SharedNumber;
  readonly #count: number;
  /** When they were taken, in monotonic milliseconds. */
  readonly #since: number;

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
    this.lost = new LockLostError(this.number.lockName, reason, this.number.env.clock.wall());
    this.number.emit("lost", { reason, held: this.held });
    void this.#ended(this.number.add(this.#count, ""));
  }

  async end(): Promise<void> {
    if (!this.lost) await this.#ended(this.number.giveBack(this.#count, this.held));
  }

  async #ended(given: Promise<void>): Promise<void> {
    this.number.env.permits.live.remove(this);
    await given.catch((cause: unknown) => this.number.emit("error", { cause }));
  }
}
