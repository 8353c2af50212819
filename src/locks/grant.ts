/** One granted hold of one lock: when it was sent for, how long it lasts, and who gives it back. */
import { type Clock, elapsedSince, type Instant } from "../base/clock.js";
import { wallTime } from "../base/platform.js";
import type { Frame, Party } from "../owners/context.js";
import { untilDeadline } from "./deadline.js";
import type { Env } from "./env.js";
import type { Heir } from "./heir.js";
import { Held } from "./held.js";
import type { Primitive } from "./primitive.js";

/** What can be done with a grant: the owner's holds on the lock are changed by one hand. */
export interface GrantHome {
  readonly env: Env;
  readonly owner: Party;
  /** Lets what the clock says is over be lost. */
  check(): void;
  extend(grant: Grant, lease: number): Promise<void>;
  release(grant: Grant, named?: NamesHeir): Promise<void>;
  /** Whether the owner has the lock by another hold as well. */
  hasBeside(grant: Grant): boolean;
}

/** Asked who is to have a lock by the command that gives it back, if that leaves the owner nothing of it. */
export type NamesHeir = () => Heir | undefined;

export interface GrantOptions {
  readonly home: GrantHome;
  readonly primitive: Primitive;
  /** Of its wire id. */
  readonly number: number;
  readonly frame: Frame | undefined;
  /** When the command that took it was sent. */
  readonly sent: Instant;
  /** Milliseconds. */
  readonly lease: number;
  /** Whether the watchdog renews it. */
  readonly renewed: boolean;
  readonly token?: bigint | undefined;
}

/** Epoch times are kept relative to this: a small whole number costs a record nothing, any other one 16 bytes. */
const EPOCH = wallTime();

export class Grant extends Held {
  readonly primitive: Primitive;
  /** There for a fenced lock only. */
  declare readonly token?: bigint;
  /** There for a run only. */
  declare readonly frame?: Frame;
  readonly number: number;
  readonly #acquired: number;
  /** Whether the watchdog renews it. */
  renewed: boolean;
  /** The next one of its owner, in the order of the grants. */
  next: Grant | undefined;
  /** Of those that `lock.unlock()` gives back, the one that comes after this one. */
  below: Grant | undefined;
  #lease: number;
  /** When the command that set its term was sent, in whole milliseconds; see {@link EPOCH}. */
  #mono: number;
  #wall: number;
  readonly #home: GrantHome;

  constructor(options: GrantOptions) {
    super();
    this.#home = options.home;
    this.primitive = options.primitive;
    this.number = options.number;
    this.renewed = options.renewed;
    if (options.token !== undefined) this.token = options.token;
    if (options.frame) this.frame = options.frame;
    this.#lease = options.lease;
    this.#mono = Math.floor(options.sent.mono);
    this.#wall = Math.floor(options.sent.wall) - EPOCH;
    this.#acquired = this.now() - EPOCH;
  }

  get lockName(): string {
    return this.primitive.lockName;
  }

  /** Made anew each time: as text it would be a seventh of what an idle hold costs. */
  get wireId(): string {
    return this.#home.env.wireId(this.number);
  }

  get ownerId(): string {
    return this.wireId;
  }

  get owner(): Party {
    return this.#home.owner;
  }

  get acquiredAt(): number {
    return this.#acquired + EPOCH;
  }

  /** The holder's field in the lock's hash. */
  get field(): string {
    return this.primitive.field(this.wireId);
  }

  /** The local deadline lies before the server's by the drift. */
  get remaining(): number {
    if (this.state === "lost") return 0;
    return untilDeadline(this.clock, this.#home.env.settings.drift, this.sent, this.#lease);
  }

  /** Milliseconds for which the server keeps the key on account of this hold. */
  get serverLeft(): number {
    return Math.max(0, Math.ceil(this.#lease - elapsedSince(this.clock, this.sent)));
  }

  /** The lock stays with its owner when this hold is given back. */
  get inner(): boolean {
    return this.#home.hasBeside(this);
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

  /** `named`: who has it next, where its own line is not asked. */
  release(named?: NamesHeir): Promise<void> {
    return this.#home.release(this, named);
  }

  /** Sets the deadline to `lease` milliseconds after `sent`. */
  setTerm(sent: Instant, lease: number): void {
    this.#mono = Math.floor(sent.mono);
    this.#wall = Math.floor(sent.wall) - EPOCH;
    this.#lease = lease;
  }

  /** As {@link setTerm}, but only towards a later deadline. */
  raiseTerm(sent: Instant, lease: number): void {
    if (lease - elapsedSince(this.clock, sent) > this.#lease - elapsedSince(this.clock, this.sent)) {
      this.setTerm(sent, lease);
    }
  }

  /** As {@link setTerm}, but only towards an earlier deadline. */
  lowerTerm(sent: Instant, lease: number): void {
    if (lease - elapsedSince(this.clock, sent) < this.#lease - elapsedSince(this.clock, this.sent)) {
      this.setTerm(sent, lease);
    }
  }

  protected now(): number {
    return this.clock.wall();
  }

  private get clock(): Clock {
    return this.#home.env.clock;
  }

  private get sent(): Instant {
    return { mono: this.#mono, wall: this.#wall + EPOCH };
  }
}
