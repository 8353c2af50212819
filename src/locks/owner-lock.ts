/**
 * An owner's record of one lock, as plain data: its holds, the order of its commands, its open calls, its next renewal.
 * The other modules of this folder are functions over it.
 */
import type { CallSite } from "../base/call-site.js";
import { type Clock, elapsed, type Instant, instant } from "../base/clock.js";
import { untilDeadline } from "../base/lease.js";
import type { Item } from "../base/list.js";
import type { LiveSet } from "../base/live-set.js";
import { wallTime } from "../base/platform.js";
import { type Frame, type LockRecord, OwnerRecord } from "../owners/context.js";
import type { TimerEntry } from "../watchdog/timer-heap.js";
import type { Watchdog } from "../watchdog/watchdog.js";
import type { Backend, Side } from "./backend.js";
import type { BareCalls } from "./bare-calls.js";
import type { Env } from "./env.js";
import { HoldRecord } from "./hold-record.js";
import type { Turns, TurnTaker } from "./turns.js";

/** The records of locks that the owners of one client have. */
export interface LockTable {
  readonly env: Env;
  /** Records with a hold. */
  readonly live: LiveSet<OwnerLock>;
  readonly watchdog: Watchdog<OwnerLock>;
  readonly bareCalls: BareCalls;
}

/** A call that wants a hold, as the other calls of its owner see it. */
export interface OpenCall extends TurnTaker {
  readonly backend: Backend;
  /** The call is a `lock()` or `tryLock()`. */
  readonly isBare: boolean;
}

/** What has gone wrong: the likely cause if the server says that a hold is gone. */
export interface Troubles {
  /** Sides that this process gave back by force; perhaps those of a lock of the same name on another server. */
  readonly forced?: readonly Side[];
  /** The last renewal got no answer. */
  readonly suspended?: boolean;
  /** The outermost acquire may reach the server once more. */
  readonly resent?: boolean;
}

/** No time at all. A small number, because Infinity would cost each record a boxed number. */
export const NEVER = -1;

/**
 * One object with only the fields that most records need, because it is the cost of an idle hold. A field that is only
 * declared exists once it is needed.
 */
export class OwnerLock implements Item, TimerEntry, LockRecord {
  /** Links of the list {@link LockTable.live}. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  /** The place in the watchdog's heap. */
  dueAt = 0;
  index = -1;
  readonly table: LockTable;
  readonly key: string;
  /** Absent until it is asked for: most owners make one call only. */
  owner: OwnerRecord | undefined;
  /** First in the list of the holds that the server counts, as far as is known, those on their way back included. */
  firstHold: Grant | undefined;
  /** The innermost hold of `lock()` or `tryLock()` that no call gave back, also a lost one; `below` links to the next. */
  openHold: Grant | undefined;
  /** Whether a hold was live when the calls under way were last told; set with the first such call. */
  declare held?: boolean;
  /** Calls under way, in the order in which they began; undefined without one, and while the record has no owner. */
  declare calls: Set<OpenCall> | undefined;
  /** The turns of the owner's runs, once there is a run. */
  declare turns: Turns | undefined;
  /** The last of the owner's commands; they take effect one after the other. */
  lastCommand: Promise<unknown> | undefined;
  /** Functions that write the tombstone of a command that may arrive once more; each takes `ms` milliseconds at most. */
  declare unsure: ((ms: number) => Promise<void>)[] | undefined;
  /** How many releases of dropped holds wait behind other commands: the server still counts these holds. */
  declare drops?: number;
  /** When the next renewal is due, in monotonic milliseconds, rounded down; {@link NEVER} while none is. */
  renewAt: number = NEVER;
  /** How many renewals are on their way. If the deadline passes before their answers, Redis is likely unreachable. */
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

/** The owner's record of the lock of this key; a new one if the owner has none. */
export function ownerLockOf(table: LockTable, owner: OwnerRecord | undefined, key: string): OwnerLock {
  return (owner && knownLockOf(owner, table.env.lockKey(key))) ?? new OwnerLock(table, owner, key);
}

/** The owner's record of the lock that owners know by this key, if there is one. */
export function knownLockOf(owner: OwnerRecord | undefined, lockKey: string): OwnerLock | undefined {
  return owner?.get(lockKey, OwnerLock);
}

/** Drops a record that is empty, if no further command of its owner has to wait for a command of this record. */
export function forgetIfIdle(own: OwnerLock): void {
  const { owner, firstHold, openHold, calls, turns, lastCommand } = own;
  if (owner && !firstHold && !openHold && !calls && !turns && !lastCommand) owner.drop(own);
}

/** The owner of a record that had none is asked for: from now on the owner knows the record. */
export function giveOwner(own: OwnerLock, owner: OwnerRecord): OwnerRecord {
  own.owner = owner;
  owner.put(own);
  return owner;
}

/** Epoch times are stored relative to this: a small whole number costs a record nothing, any other number 16 bytes. */
const EPOCH = wallTime();

export interface GrantOptions {
  readonly own: OwnerLock;
  readonly backend: Backend;
  readonly number: number;
  readonly frame: Frame | undefined;
  /** When the command that took the hold was sent. */
  readonly sent: Instant;
  readonly now: Instant;
  readonly lease: number;
  readonly renewed: boolean;
  readonly token: bigint | undefined;
}

/** One granted hold of one lock: when its command was sent, and how long the hold lasts. */
export class Grant extends HoldRecord {
  readonly own: OwnerLock;
  readonly backend: Backend;
  /** There for a fenced lock only. */
  declare readonly token?: bigint;
  /** There for a run only. */
  declare readonly frame?: Frame;
  /** There with the option `traceHolds` only. */
  declare callSite?: CallSite;
  /** The `Hold` that the user got; there only if the owner can ask for it again. */
  declare view?: object | undefined;
  /** The number in its wire id. */
  readonly number: number;
  readonly #acquired: number;
  /** Whether the watchdog renews the hold. */
  renewed: boolean;
  /** The next hold of its owner, in the order of the grants. */
  next: Grant | undefined;
  below: Grant | undefined;
  #lease = 0;
  /** When the command that set the hold's term was sent, in whole milliseconds; see {@link EPOCH}. */
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

  /** Made anew each time: a stored text would be a seventh of the cost of an idle hold. */
  get wireId(): string {
    return this.own.table.env.wireId(this.number);
  }

  get ownerId(): string {
    return this.wireId;
  }

  get owner(): OwnerRecord {
    return this.own.owner ?? giveOwner(this.own, new OwnerRecord());
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

  /** Milliseconds to the local deadline, which lies before the server's by the drift. */
  get remaining(): number {
    return this.remainingAt(instant(this.clock));
  }

  /** Like {@link remaining}, for a caller that has read the clocks. */
  remainingAt(now: Instant): number {
    return untilDeadline(this.#lease, this.own.table.env.settings.drift, this.#elapsed(now));
  }

  /** Milliseconds for which the server still keeps the key because of this hold. */
  serverLeftAt(now: Instant): number {
    return Math.max(0, Math.ceil(this.#lease - this.#elapsed(now)));
  }

  /** Sets the deadline to `lease` milliseconds after `sent`. */
  setTerm(sent: Instant, lease: number): void {
    this.#mono = Math.floor(sent.mono);
    this.#wall = Math.floor(sent.wall) - EPOCH;
    this.#lease = lease;
  }

  /** Like {@link setTerm}, but only towards a later deadline. */
  raiseTerm(sent: Instant, lease: number): void {
    if (this.#laterBy(sent, lease) > 0) this.setTerm(sent, lease);
  }

  /** Like {@link setTerm}, but only towards an earlier deadline. */
  lowerTerm(sent: Instant, lease: number): void {
    if (this.#laterBy(sent, lease) < 0) this.setTerm(sent, lease);
  }

  #laterBy(sent: Instant, lease: number): number {
    const now = instant(this.clock);
    return lease - elapsed(sent, now) - (this.#lease - this.#elapsed(now));
  }

  /** Milliseconds since the command that set the hold's term was sent. */
  #elapsed({ mono, wall }: Instant): number {
    return Math.max(mono - this.#mono, wall - EPOCH - this.#wall);
  }

  protected get clock(): Clock {
    return this.own.table.env.clock;
  }
}
