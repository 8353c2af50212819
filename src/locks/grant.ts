/**
 * One granted hold as the inside of the library sees it: when it was sent for, how long it lasts, and how it ended.
 * The Hold that users get is a view of it.
 */
import { type Clock, elapsedSince, type Instant } from "../base/clock.js";
import { LockLostError, type LossReason } from "../base/errors.js";
import type { Frame } from "../owners/context.js";
import type { Primitive } from "./primitive.js";

/** How a call came to a hold. Only `bare` ones are given back by `lock.unlock()`. */
export type Origin = "bare" | "run" | "member";

export interface GrantOptions {
  readonly clock: Clock;
  readonly drift: number;
  readonly primitive: Primitive;
  readonly wireId: string;
  readonly origin: Origin;
  /** Of a `run`. */
  readonly frame?: Frame | undefined;
  /** When the command that took it was sent. */
  readonly sent: Instant;
  /** Milliseconds. */
  readonly lease: number;
  /** Whether the watchdog renews it. */
  readonly renewed: boolean;
  readonly token?: bigint | undefined;
}

/** Taken off each local deadline besides the drift: timers and PTTL are exact to a millisecond or so. */
const MARGIN = 2;

export class Grant {
  readonly primitive: Primitive;
  readonly wireId: string;
  readonly origin: Origin;
  readonly frame: Frame | undefined;
  readonly renewed: boolean;
  readonly token: bigint | undefined;
  readonly acquiredAt: number;
  /** `ended`: given back, or on its way; `lost`: final. */
  state: "held" | "ended" | "lost" = "held";
  /** What all calls of unlock share. */
  outcome: Promise<void> | undefined;
  /** Tells who waits for the outcome that Redis gave no answer in time. */
  onSilence: (() => void) | undefined;
  /** Its `acquired` event was sent, so its `released` is owed. */
  announced = false;
  /** `lock.unlock()` gave it back, so its own unlock is not its owner's any more. */
  takenBack = false;
  #sent: Instant;
  #lease: number;
  #loss: LockLostError | undefined;
  #controller: AbortController | undefined;
  readonly #clock: Clock;
  readonly #drift: number;

  constructor(options: GrantOptions) {
    this.#clock = options.clock;
    this.#drift = options.drift;
    this.primitive = options.primitive;
    this.wireId = options.wireId;
    this.origin = options.origin;
    this.frame = options.frame;
    this.renewed = options.renewed;
    this.token = options.token;
    this.#sent = options.sent;
    this.#lease = options.lease;
    this.acquiredAt = options.clock.wall();
  }

  get lockName(): string {
    return this.primitive.lockName;
  }

  /** The holder's field in the lock's hash. */
  get field(): string {
    return this.primitive.field(this.wireId);
  }

  get isHeld(): boolean {
    return this.state === "held" && this.remaining > 0;
  }

  /** Milliseconds to the local deadline, which lies before the server's by the drift; not below 0. */
  get remaining(): number {
    if (this.state === "lost") return 0;
    return Math.max(0, this.#lease * (1 - this.#drift) - MARGIN - elapsedSince(this.#clock, this.#sent));
  }

  /** Milliseconds for which the server keeps the key on account of this hold. */
  get serverLeft(): number {
    return Math.max(0, Math.ceil(this.#lease - elapsedSince(this.#clock, this.#sent)));
  }

  get held(): number {
    return this.#clock.wall() - this.acquiredAt;
  }

  get loss(): LockLostError | undefined {
    return this.#loss;
  }

  /** Made when first read: most holds are never asked for it. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#loss) this.#controller.abort(this.#loss);
    }
    return this.#controller.signal;
  }

  /** Sets the deadline to `lease` milliseconds after `sent`. */
  setTerm(sent: Instant, lease: number): void {
    this.#sent = sent;
    this.#lease = lease;
  }

  /** As {@link setTerm}, but only towards a later deadline. */
  raiseTerm(sent: Instant, lease: number): void {
    if (lease - elapsedSince(this.#clock, sent) > this.#lease - elapsedSince(this.#clock, this.#sent)) {
      this.setTerm(sent, lease);
    }
  }

  /** As {@link setTerm}, but only towards an earlier deadline. */
  lowerTerm(sent: Instant, lease: number): void {
    if (lease - elapsedSince(this.#clock, sent) < this.#lease - elapsedSince(this.#clock, this.#sent)) {
      this.setTerm(sent, lease);
    }
  }

  /** Marks it as lost; the signal is to be aborted by {@link abort}, outside every scope. */
  lose(reason: LossReason): LockLostError {
    this.state = "lost";
    this.#loss ??= new LockLostError(this.lockName, reason, this.#clock.wall());
    return this.#loss;
  }

  abort(): void {
    this.#controller?.abort(this.#loss);
  }
}
