/** One count of a grant: granted, then given back or lost. A `Hold` is the user's view of it. */
import { setMaxListeners } from "node:events";
import { type Clock, type Instant, instant } from "../base/clock.js";
import { failure, isLockError, LockLostError, LockNotOwnerError } from "../base/errors.js";
import { outside } from "../base/outside.js";
import type { Frame } from "../owner/context.js";
import type { OwnerRecord } from "../owner/owner.js";
import type { Side } from "../waiting/wanted.js";
import type { Call } from "./call.js";
import type { Place } from "./dropped.js";
import type { Asked } from "./options.js";

/** What an owner has of a lock or of a group, of which a hold is one count. */
export interface Held {
  readonly lockName: string;
  readonly lockKey: string;
  /** Of a group: that of its first member. */
  readonly wireId: string;
  /** Made when it is asked for: most owners make one call only. */
  readonly owner: OwnerRecord;
  readonly clock: Clock;
  /** Milliseconds to the local deadline. */
  readonly remaining: number;
  /** Loses all if the deadline has passed. */
  check(now?: Instant): void;
  extend(lease: number): Promise<void>;
  giveBack(hold: HoldRecord, now: Instant): Promise<void>;
  askAgain(hold: HoldRecord): Promise<void>;
  /** Of the signal that all its holds share; made when it is asked for, as most never are. */
  controller?: AbortController;
  /** Only its `Hold` can give it back, and the user has dropped that, and all that it has of its members. */
  readonly isGarbage: boolean;
}

export class HoldRecord<H extends Held = Held> {
  readonly grant: H;
  readonly side: Side;
  /** Whether the watchdog keeps the grant because of this hold. */
  readonly renewed: boolean;
  /** Of a run. */
  declare readonly frame?: Frame;
  declare readonly place?: Place;
  /** Epoch milliseconds at which the grant arrived. */
  readonly acquiredAt: number;
  /** `ended`: given back, or on its way back. `lost`: final. */
  state: "live" | "ended" | "lost" = "live";
  /** What the user got. Once the hold has lived for long it is known weakly, if it is the only way to give the hold back. */
  view: object | WeakRef<object> | undefined;
  /** Whether events tell of it: a seat of a group is told of once the group has a hold. */
  isTold = true;
  /** The user may keep something else of the hold: its signal, or its owner. */
  isKept = false;
  /** The owner whose `lock.unlock()` finds it. */
  declare openIn?: OwnerRecord;
  /** Of a seat: the hold of the group. */
  declare group?: HoldRecord;
  /** Of a seat: the seat of another call that its release grants the lock. */
  declare successor?: Call;
  declare loss?: LockLostError;
  /** Called when it is given back or lost. */
  declare private onEnd?: (() => void)[];
  #outcome: Promise<void> | undefined;

  constructor(grant: H, side: Side, { lease, frame, place }: Asked, now: Instant = instant(grant.clock)) {
    this.grant = grant;
    this.side = side;
    this.renewed = lease === undefined;
    if (frame) this.frame = frame;
    if (place) this.place = place;
    this.acquiredAt = now.wall;
  }

  get lockKey(): string {
    return this.grant.lockKey;
  }

  get isHeld(): boolean {
    return this.state === "live" && this.grant.remaining > 0;
  }

  /** `unlock()` was called. */
  get isReturned(): boolean {
    return this.state === "ended" || this.#outcome !== undefined;
  }

  get signal(): AbortSignal {
    this.keep();
    const { grant } = this;
    if (!grant.controller) {
      grant.controller = new AbortController();
      // It may be given to any number of fetches: Node would warn of the eleventh listener as of a leak.
      setMaxListeners(0, grant.controller.signal);
      if (this.loss) grant.controller.abort(this.loss);
    }
    return grant.controller.signal;
  }

  /** Whoever has no owner of his own has one from now on, whose `lock.unlock()` finds this hold. */
  get owner(): OwnerRecord {
    this.keep();
    const { owner } = this.grant;
    if (!this.openIn && !this.frame && !this.group && !this.isReturned) owner.opened(this);
    return owner;
  }

  /** The user may keep something else than the view. */
  keep(): void {
    this.isKept = true;
    if (this.view instanceof WeakRef) this.view = this.view.deref();
  }

  /** Whether the user has dropped all that can give it back: known from the second look on, after it is known weakly. A seat may have been shown to nobody. */
  get isGarbage(): boolean {
    const { view } = this;
    if (this.isKept) return false;
    if (view instanceof WeakRef) return view.deref() === undefined;
    if (view) this.view = new WeakRef(view);
    return !view;
  }

  /** Calls back when the hold is given back or lost. */
  whenEnded(callback: () => void): void {
    this.onEnd ??= [];
    this.onEnd.push(callback);
  }

  /** A second call shares the first one's outcome; after UNAVAILABLE a further call asks again. */
  release(): Promise<void> {
    this.#outcome ??= this.#giveBack();
    return this.#outcome;
  }

  /** The hold is lost: for good. */
  lose(loss: LockLostError): void {
    if (this.state === "lost") return;
    this.state = "lost";
    this.loss = loss;
    this.#tellEnd();
    const { controller } = this.grant;
    if (controller) outside(() => controller.abort(loss));
  }

  /** @throws LOCK_LOST unless {@link isHeld}, also if it was given back */
  assertHeld(): void {
    this.grant.check();
    if (this.isHeld) return;
    const { lockName, clock } = this.grant;
    const what = this.state === "ended" ? this.#givenBack() : undefined;
    throw this.loss ?? new LockLostError(lockName, "expired", clock.wall(), undefined, what);
  }

  /** @throws LOCK_LOST if it is lost, NOT_OWNER if it was given back */
  assertUsable(): void {
    this.grant.check();
    if (this.loss) throw this.loss;
    if (this.state === "live") return;
    throw new LockNotOwnerError(this.grant.lockName, this.#givenBack());
  }

  #giveBack(): Promise<void> {
    const { grant } = this;
    const now = instant(grant.clock);
    grant.check(now);
    this.openIn?.closed(this);
    const { loss } = this;
    // A close of the client was told by the hold's signal already, so its unlock resolves.
    if (loss) return loss.reason === "closed" ? Promise.resolve() : failure(loss);
    if (this.state === "ended") return grant.askAgain(this).catch((error) => this.unreleased(error));
    this.state = "ended";
    this.#tellEnd();
    return grant.giveBack(this, now);
  }

  /** Its release has failed: what its user is told. */
  unreleased(error: unknown): Promise<never> {
    if (isLockError(error, "UNAVAILABLE")) this.#outcome = undefined;
    return failure(error);
  }

  #givenBack(): string {
    return `lock "${this.grant.lockName}": this hold was given back; take the lock again`;
  }

  #tellEnd(): void {
    for (const callback of this.onEnd?.splice(0) ?? []) callback();
  }
}
