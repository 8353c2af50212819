/** One granted hold of one lock: when it was sent for, how long it lasts, and who gives it back. */
import { type Clock, elapsedSince, type Instant } from "../base/clock.js";
import type { Frame } from "../owners/context.js";
import { untilDeadline } from "./deadline.js";
import { Held } from "./held.js";
import type { Primitive } from "./primitive.js";

/** How a call came to a hold. Only `bare` ones are given back by `lock.unlock()`. */
export type Origin = "bare" | "run" | "member";

/** What can be done with a grant: the owner's holds on the lock are changed by one hand. */
export interface GrantHome {
  /** Lets what the clock says is over be lost. */
  check(): void;
  extend(grant: Grant, lease: number): Promise<void>;
  release(grant: Grant): Promise<void>;
}

export interface GrantOptions {
  readonly home: GrantHome;
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

export class Grant extends Held {
  readonly primitive: Primitive;
  readonly wireId: string;
  readonly origin: Origin;
  readonly frame: Frame | undefined;
  readonly token: bigint | undefined;
  readonly acquiredAt: number;
  /** Whether the watchdog renews it. */
  renewed: boolean;
  /** Tells who waits for the outcome that Redis gave no answer in time. */
  onSilence: (() => void) | undefined;
  #sent: Instant;
  #lease: number;
  readonly #home: GrantHome;
  readonly #clock: Clock;
  readonly #drift: number;

  constructor(options: GrantOptions) {
    super();
    this.#home = options.home;
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

  get ownerId(): string {
    return this.wireId;
  }

  /** The holder's field in the lock's hash. */
  get field(): string {
    return this.primitive.field(this.wireId);
  }

  /** The local deadline lies before the server's by the drift. */
  get remaining(): number {
    if (this.state === "lost") return 0;
    return untilDeadline(this.#clock, this.#drift, this.#sent, this.#lease);
  }

  /** Milliseconds for which the server keeps the key on account of this hold. */
  get serverLeft(): number {
    return Math.max(0, Math.ceil(this.#lease - elapsedSince(this.#clock, this.#sent)));
  }

  check(): void {
    this.#home.check();
  }

  /** One that is renewed never falls below the watchdog's lease. */
  extend(lease: number): Promise<void> {
    return this.#home.extend(this, lease);
  }

  /** Ends the renewals: from now on it has `lease` milliseconds. */
  limit(lease: number): Promise<void> {
    this.renewed = false;
    return this.extend(lease);
  }

  release(): Promise<void> {
    return this.#home.release(this);
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

  protected now(): number {
    return this.#clock.wall();
  }
}
