/**
 * What one owner has of one lock, as plain records: its holds, the order of its commands, its open calls, its next
 * renewal. The modules beside this one are functions over it.
 */
import type { CallSite } from "../base/call-site.js";
import { type Clock, elapsed, type Instant, instant } from "../base/clock.js";
import { untilDeadline } from "../base/lease.js";
import type { Item } from "../base/list.js";
import { wallTime } from "../base/platform.js";
import { type Frame, type LockRecord, OwnerRecord } from "../owners/context.js";
import type { TimerEntry } from "../watchdog/timer-heap.js";
import type { Watchdog } from "../watchdog/watchdog.js";
import type { Backend, Side } from "./backend.js";
import type { BareCalls } from "./bare-calls.js";
import type { Env } from "./env.js";
import { HoldRecord } from "./hold-record.js";
import type { LiveSet } from "./live-set.js";
import type { Turns, TurnTaker } from "./turns.js";

/** What the owners of one client have of locks. */
export interface LockTable {
  readonly env: Env;
  /** Records with a hold. */
  readonly live: LiveSet<OwnerLock>;
  readonly watchdog: Watchdog<OwnerLock>;
  readonly bareCalls: BareCalls;
}

/** A call of an owner that wants a hold, as its other calls see it. */
export interface OpenCall extends TurnTaker {
  readonly backend: Backend;
  /** Of `lock()` or `tryLock()`. */
  readonly isBare: boolean;
}

/** What has gone wrong, and is the likely cause should a hold be gone. */
export interface Troubles {
  /** Sides that another client of this process may have given back by force, if it was on the same server. */
  readonly forced?: readonly Side[];
  /** The last renewal got no answer. */
  readonly suspended?: boolean;
  /** The outermost acquire may arrive once more. */
  readonly resent?: boolean;
}

/** No time at all: a small number, since Infinity would cost each record a boxed one. */
export const NEVER = -1;

/**
 * One object, with nothing but what most records need: it is what an idle hold costs. What is declared only is there once it
 * is needed.
 */
export class OwnerLock implements Item, TimerEntry, LockRecord {
  /** In {@link LockTable.live}. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  /** In the watchdog's heap. */
  dueAt = 0;
  index = -1;
  readonly table: LockTable;
  /** The lock's. */
  readonly key: string;
  /** Absent until somebody asks: most calls are the only one of their owner. */
  owner: OwnerRecord | undefined;
  /** Counted by the server, as far as is known, in the order of their grants; those on their way back included. */
  firstHold: Grant | undefined;
  /** The innermost that `lock()` or `tryLock()` took and nobody gave back, a lost one too; each knows the one below it. */
  openHold: Grant | undefined;
  /** Whether a hold was live when the calls under way were last told; there with the first of them. */
  declare held?: boolean;
  /** Calls under way, in the order in which they began; undefined while there is none, or none can be beside it. */
  declare calls: Set<OpenCall> | undefined;
  /** Of its runs, once there is one. */
  declare turns: Turns | undefined;
  /** The last of the commands that take effect one after the other. */
  lastCommand: Promise<unknown> | undefined;
  /** Write the tombstones of commands that may arrive once more; for so many milliseconds at most. */
  declare unsure: ((ms: number) => Promise<void>)[] | undefined;
  /** Releases of holds that were dropped which stand behind other commands: the server counts more than {@link firstHold}. */
  declare drops?: number;
  /** Monotonic milliseconds, rounded down; {@link NEVER} while none is due. */
  renewAt: number = NEVER;
  /** Renewals on their way: if they are not answered, the likely cause, should the deadline pass. */
  renewing = 0;
  declare troubles: Troubles | undefined;

  constructor(table: LockTable, owner: OwnerRecord | undefined, key: string) {
    this.table = table;
    this.owner = owner;
    this.key = key;
    owner?.put(this);
  }

  get lockKey(): string {
    return this.table.env.lockKey(this.key);
  }
}

/** For a call that wants a hold of the lock of this key. */
export function ownerLockOf(table: LockTable, owner: OwnerRecord | undefined, key: string): OwnerLock {
  return (owner && knownLockOf(owner, table.env.lockKey(key))) ?? new OwnerLock(table, owner, key);
}

/** What the owner has of the lock that owners know by this key. */
export function knownLockOf(owner: OwnerRecord | undefined, lockKey: string): OwnerLock | undefined {
  return owner?.get(lockKey) as OwnerLock | undefined;
}

/** Drops a record that says nothing, and behind which no further command of its owner has to wait. */
export function forgetIfIdle(own: OwnerLock): void {
  const { owner, firstHold, openHold, calls, turns, lastCommand } = own;
  if (owner && !firstHold && !openHold && !calls && !turns && !lastCommand) owner.drop(own);
}

/** Epoch times are kept relative to this: a small whole number costs a record nothing, any other one 16 bytes. */
const EPOCH = wallTime();

export interface GrantOptions {
  readonly own: OwnerLock;
  readonly backend: Backend;
  readonly number: number;
  readonly frame: Frame | undefined;
  /** When the command that took it was sent. */
  readonly sent: Instant;
  readonly now: Instant;
  readonly lease: number;
  readonly renewed: boolean;
  readonly token: bigint | undefined;
}

/** One granted hold of one lock: when it was sent for, and how long it lasts. */
export class Grant extends HoldRecord {
  readonly own: OwnerLock;
  readonly backend: Backend;
  /** There for a fenced lock only. */
  declare readonly token?: bigint;
  /** There for a run only. */
  declare readonly frame?: Frame;
  /** There with the option `traceHolds` only. */
  declare callSite?: CallSite;
  /** What its owner got; there only where the owner can ask for it again. */
  declare view?: object;
  /** Of its wire id. */
  readonly number: number;
  readonly #acquired: number;
  /** Whether the watchdog renews it. */
  renewed: boolean;
  /** The next one of its owner, in the order of the grants. */
  next: Grant | undefined;
  below: Grant | undefined;
  #lease = 0;
  /** When the command that set its term was sent, in whole milliseconds; see {@link EPOCH}. */
  #mono = 0;
  #wall = 0;

  constructor({ own, backend, number, frame, sent, now, lease, renewed, token }: GrantOptions) {
    super();
    this.own = own;
    this.backend = backend;
    this.number = number;
    this.renewed = renewed;
    if (token !== undefined) this.token = token;
    if (frame) this.frame = frame;
    this.setTerm(sent, lease);
    this.#acquired = now.wall - EPOCH;
  }

  get lockName(): string {
    return this.backend.lockName;
  }

  /** Made anew each time: as text it would be a seventh of what an idle hold costs. */
  get wireId(): string {
    return this.own.table.env.wireId(this.number);
  }

  get ownerId(): string {
    return this.wireId;
  }

  get owner(): OwnerRecord {
    const { own } = this;
    if (!own.owner) {
      own.owner = new OwnerRecord();
      own.owner.put(own);
      forgetIfIdle(own);
    }
    return own.owner;
  }

  get acquiredAt(): number {
    return this.#acquired + EPOCH;
  }

  get side(): Side {
    return this.backend.side;
  }

  /** The holder's field in the lock's hash. */
  get field(): string {
    return this.backend.field(this.wireId);
  }

  /** The local deadline lies before the server's by the drift. */
  get remaining(): number {
    return this.remainingAt(instant(this.clock));
  }

  /** As {@link remaining}, for who has read the clocks. */
  remainingAt(now: Instant): number {
    return untilDeadline(this.#lease, this.own.table.env.settings.drift, this.#elapsed(now));
  }

  /** Milliseconds for which the server keeps the key on account of this hold. */
  serverLeftAt(now: Instant): number {
    return Math.max(0, Math.ceil(this.#lease - this.#elapsed(now)));
  }

  /** Sets the deadline to `lease` milliseconds after `sent`. */
  setTerm(sent: Instant, lease: number): void {
    this.#mono = Math.floor(sent.mono);
    this.#wall = Math.floor(sent.wall) - EPOCH;
    this.#lease = lease;
  }

  /** As {@link setTerm}, but only towards a later deadline. */
  raiseTerm(sent: Instant, lease: number): void {
    if (this.#laterBy(sent, lease) > 0) this.setTerm(sent, lease);
  }

  /** As {@link setTerm}, but only towards an earlier deadline. */
  lowerTerm(sent: Instant, lease: number): void {
    if (this.#laterBy(sent, lease) < 0) this.setTerm(sent, lease);
  }

  #laterBy(sent: Instant, lease: number): number {
    const now = instant(this.clock);
    return lease - elapsed(sent, now) - (this.#lease - this.#elapsed(now));
  }

  /** Milliseconds since the command that set its term was sent. */
  #elapsed({ mono, wall }: Instant): number {
    return Math.max(mono - this.#mono, wall - EPOCH - this.#wall);
  }

  protected get clock(): Clock {
    return this.own.table.env.clock;
  }
}
