/** The record of one hold of a lock or a group: granted, then given back or lost. A `Hold` is the user's view of it. */
import type { Clock } from "../base/clock.js";
import { LockLostError, LockNotOwnerError, type LossReason } from "../base/errors.js";
import { type OwnerRecord, outside } from "../owners/context.js";

interface Fate {
  takenBack?: boolean;
  loss?: LockLostError;
  controller?: AbortController;
  callback?: (() => void) | undefined;
  ended?: (() => void)[];
}

export abstract class HoldRecord {
  abstract readonly lockName: string;
  /** `clientId:n`, as it stands in Redis. */
  abstract readonly ownerId: string;
  /** The owner of the hold. */
  abstract readonly owner: OwnerRecord;
  /** Epoch milliseconds at which the grant arrived. */
  abstract readonly acquiredAt: number;
  /** `ended`: given back, or on its way back. `lost`: final. */
  state: "live" | "ended" | "lost" = "live";
  /** The outcome of the release, which all calls of `unlock()` share. */
  outcome: Promise<void> | undefined;
  /** Its `acquired` event was sent, so its `released` event must follow. */
  announced = false;
  /** There for a hold only whose owner had another live one when it was granted. */
  declare nested?: boolean;
  /** Ends the watch that gives the hold back if its view becomes garbage; kept by `dropped.ts`. */
  drop: { forget(record: HoldRecord): void } | undefined;
  /** State of the few holds that are lost or taken back, or whose end is listened for. */
  #fate: Fate | undefined;

  /** Milliseconds to the local deadline; not below 0. */
  abstract get remaining(): number;
  protected abstract readonly clock: Clock;

  /** For the trace. */
  toString(): string {
    return this.ownerId;
  }

  get isHeld(): boolean {
    return this.state === "live" && this.remaining > 0;
  }

  /** Milliseconds since the grant. */
  get heldFor(): number {
    return this.clock.wall() - this.acquiredAt;
  }

  get loss(): LockLostError | undefined {
    return this.#fate?.loss;
  }

  /** Made when first read: most holds are never asked for it. */
  get signal(): AbortSignal {
    this.#fate ??= {};
    if (!this.#fate.controller) {
      this.#fate.controller = new AbortController();
      if (this.loss) this.#fate.controller.abort(this.loss);
    }
    return this.#fate.controller.signal;
  }

  /** `lock.unlock()` gave the hold back, so `hold.unlock()` rejects NOT_OWNER. */
  get takenBack(): boolean {
    return this.#fate?.takenBack ?? false;
  }

  set takenBack(value: boolean) {
    this.#fate ??= {};
    this.#fate.takenBack = value;
  }

  /** Called once when the hold is lost or on its way back, outside every scope. */
  set onOver(callback: () => void) {
    this.#fate ??= {};
    this.#fate.callback = callback;
  }

  /** Calls back when the hold is given back or lost. */
  whenEnded(callback: () => void): void {
    this.#fate ??= {};
    this.#fate.ended ??= [];
    this.#fate.ended.push(callback);
  }

  /** The hold is on its way back. */
  end(): void {
    this.state = "ended";
    if (!this.#fate) return;
    this.#tellEnd(this.#fate);
    outside(() => this.#tellOver());
  }

  /** @throws LOCK_LOST unless {@link isHeld}, also if it was given back */
  assertHeld(): void {
    if (this.isHeld) return;
    const what = this.state === "ended" ? this.#givenBack() : undefined;
    throw this.loss ?? new LockLostError(this.lockName, "expired", this.clock.wall(), undefined, what);
  }

  /** @throws LOCK_LOST if it is lost, NOT_OWNER if it was given back */
  assertUsable(): void {
    if (this.loss) throw this.loss;
    if (this.state === "live") return;
    throw new LockNotOwnerError(this.lockName, this.#givenBack());
  }

  #givenBack(): string {
    return `lock "${this.lockName}": this hold was given back; take the lock again`;
  }

  /** Marks the hold as lost; {@link tellLoss} must follow, outside every scope. */
  lose(reason: LossReason): LockLostError {
    this.state = "lost";
    this.#fate ??= {};
    this.#fate.loss ??= new LockLostError(this.lockName, reason, this.clock.wall());
    this.#tellEnd(this.#fate);
    return this.#fate.loss;
  }

  tellLoss(): void {
    const fate = this.#fate;
    fate?.controller?.abort(fate.loss);
    this.#tellOver();
  }

  #tellOver(): void {
    const { callback } = this.#fate ?? {};
    if (this.#fate) this.#fate.callback = undefined;
    callback?.();
  }

  #tellEnd({ ended }: Fate): void {
    for (const callback of ended?.splice(0) ?? []) callback();
  }
}

/** What can be done with the record of a hold; a lock and a group do it differently. */
export interface HoldVerbs<R extends HoldRecord> {
  /** Loses the hold if its deadline has passed by the clock. */
  check(record: R): void;
  /** Sets the deadline to `lease` ms from now. */
  extend(record: R, lease: number): Promise<void>;
  /** Gives the hold back. */
  release(record: R): Promise<void>;
}

/** What a `Hold` is a view of. */
export interface HoldParts {
  readonly record: HoldRecord;
  readonly verbs: HoldVerbs<HoldRecord>;
}
