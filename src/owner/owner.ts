/**
 * An owner is what a thread is to Redisson: it re-enters its own locks. It has no identity on the wire: each outermost
 * acquisition mints a wire id of its own.
 *
 * Its record is what it has: a grant of each lock that it holds, its calls under way, and the holds that `lock.unlock()` gives
 * back. It also knows whose run's turn it is, but neither commands nor scripts.
 */
import { checkFunction, received } from "../base/arguments.js";
import type { Grant } from "../lock/grant.js";
import type { HoldRecord } from "../lock/hold-record.js";
import type { Asked } from "../lock/options.js";
import type { Waiter } from "../waiting/waiter.js";
import type { Wanted } from "../waiting/wanted.js";
import { currentFrame, encloses, type Frame, openFrame, runInside } from "./context.js";

/** A wire id, and the lock that it stands for. */
export type Named = Pick<Grant, "lockKey" | "wireId">;

/** A lock on one side, or a group of locks, as owners see it. */
export interface OwnLock extends Wanted {
  readonly lockKey: string;
  /** At which its calls take turns: its own, or of a group those of its members. */
  readonly turnKeys: readonly string[];
}

/** A call under way, as its owner sees it. */
export interface OwnCall extends Waiter<OwnLock> {
  readonly asked: Asked;
}

/** A run that has the lock. */
interface ActiveRun {
  readonly lockKey: string;
  readonly frame: Frame;
  readonly isShared: boolean;
}

/** Whether both are runs that get the lock in order, and the first tries or waits in line already. */
function goesBefore(other: OwnCall, { asked, wanted }: OwnCall): boolean {
  if (!asked.frame || !other.asked.frame || wanted.traits.shared) return false;
  return other.wanted.siteName === wanted.siteName && (other.isInLine || other.state === "trying");
}

const NO_CALLS: readonly OwnCall[] = [];

export class OwnerRecord {
  #grants: Map<string, Grant> | undefined;
  #calls: Set<OwnCall> | undefined;
  /** Whose END has no answer yet. */
  #ending: Named[] | undefined;
  #running: readonly ActiveRun[] | undefined;
  #open: HoldRecord[] | undefined;

  /** The grant that the owner has under this key, while it is held. */
  grantOf(lockKey: string): Grant | undefined {
    const grant = this.#grants?.get(lockKey);
    return grant?.isHeld ? grant : undefined;
  }

  /** No getter: whoever prints a Hold with its getters must not see the connection. */
  grants(): readonly Grant[] {
    return [...(this.#grants?.values() ?? [])];
  }

  /** From now on the owner's calls on this lock re-enter, those under way too. */
  granted(grant: Grant): void {
    this.#grants ??= new Map();
    this.#grants.set(grant.lockKey, grant);
    if (this.#has(({ isInLine }) => isInLine))
      for (const call of this.#calling(grant.lockKey)) if (call.isInLine) call.step();
    this.resume(grant.lockKey);
  }

  /** The grant is not held any more. */
  drop(grant: Grant): void {
    if (this.#grants?.get(grant.lockKey) === grant) this.#grants.delete(grant.lockKey);
  }

  /** The END of a wire id is on its way, until {@link answered}. */
  ends(of: Named): void {
    this.#ending ??= [];
    this.#ending.push(of);
  }

  /** The END of a wire id has been answered: who was refused because of it looks again. */
  answered(of: Named): void {
    this.#ending?.splice(this.#ending.indexOf(of), 1);
    this.resume(of.lockKey);
  }

  /** Whether a `lock()` or `tryLock()` that is wanted is under way. */
  isAsking(isWanted: (call: OwnCall) => boolean): boolean {
    return this.#has((call) => !call.asked.frame && isWanted(call));
  }

  begin(call: OwnCall): void {
    this.#calls ??= new Set();
    this.#calls.add(call);
  }

  /** The call is over. */
  over(call: OwnCall): void {
    if (!this.#calls?.delete(call)) return;
    // Who was refused by the call's wire id, or let it go first, looks again.
    for (const key of call.wanted.turnKeys) this.resume(key);
  }

  /**
   * Whether the holder of the lock that `asking` wants is the owner itself. It may be so by another call, or by a grant
   * that is on its way here or back. One owner may have locks of several clients: to each other these are strangers.
   */
  isOwn(wireId: string, asking: OwnCall): boolean {
    const { lockKey } = asking.wanted;
    const isIt = (of: Named | undefined) => of?.lockKey === lockKey && of.wireId === wireId;
    if (isIt(this.#grants?.get(lockKey)) || this.#ending?.some(isIt)) return true;
    for (const call of this.#calls ?? NO_CALLS) {
      if (call === asking || call.wanted.lockKey !== lockKey || call.wireId !== wireId) continue;
      // A copy of its try was granted after the try was refused: it has to ask once more.
      if (call.isInLine) call.tryNow();
      return true;
    }
    return false;
  }

  /** Calls on this lock that stand aside look again. A run does so only if no other goes before it. */
  resume(lockKey: string): void {
    if (!this.#has(({ isAside }) => isAside)) return;
    const calls = this.#calling(lockKey);
    for (const call of calls) {
      const isFirst = (other: OwnCall) => goesBefore(other, call) && this.admits(other, lockKey);
      if (call.isAside && this.admits(call, lockKey) && !calls.some(isFirst)) call.step();
    }
  }

  /** Whether a call of it is such: mostly none is, and no list is made of them. */
  #has(isSuch: (call: OwnCall) => boolean): boolean {
    for (const call of this.#calls ?? NO_CALLS) if (isSuch(call)) return true;
    return false;
  }

  /** Its calls that want a lock, or a group with that as a member; they change while one goes through them. */
  #calling(lockKey: string): readonly OwnCall[] {
    return [...(this.#calls ?? [])].filter((call) => call.wanted.turnKeys.includes(lockKey));
  }

  /**
   * Whether the call may have the lock now. Runs of one lock overlap only if one was called inside the other, or if both
   * read; a call that is no run waits for none.
   */
  admits({ asked: { frame }, wanted: { traits } }: OwnCall, lockKey: string): boolean {
    const blocks = (run: ActiveRun) =>
      run.lockKey === lockKey && !(traits.shared && run.isShared) && !encloses(run.frame, frame);
    return !frame || !this.#running?.some(blocks);
  }

  /** The call has the lock: if it is a run, it has a turn until its {@link endRun}. */
  beginRun({ asked: { frame }, wanted: { traits } }: OwnCall, lockKey: string): void {
    if (!frame) return;
    this.#running = [...(this.#running ?? []), { lockKey, frame, isShared: traits.shared === true }];
  }

  /** The run is over, or has come to nothing: a sibling may begin. */
  endRun(lockKey: string, frame: Frame): void {
    const left = this.#running?.filter((run) => run.lockKey !== lockKey || run.frame !== frame);
    if (left?.length === this.#running?.length) return;
    this.#running = left;
    this.resume(lockKey);
  }

  // Holds that `lock.unlock()` gives back, lost ones too, in the order of the grants

  opened(hold: HoldRecord): void {
    hold.openIn = this;
    this.#open ??= [];
    this.#open.push(hold);
  }

  closed(hold: HoldRecord): void {
    this.#open = this.#open?.filter((other) => other !== hold);
  }

  /** The innermost that is wanted. */
  innermost(isWanted: (hold: HoldRecord) => boolean): HoldRecord | undefined {
    return this.#open && [...this.#open].reverse().find(isWanted);
  }
}

/** An Owner and a Hold give their owner's record under this symbol, so that `options.owner` may be either. */
const OWNER = Symbol.for("holdfast.owner/2");
/** The Hold of a run gives that run. */
const RUN = Symbol.for("holdfast.run/1");

/**
 * An owner of locks: it re-enters the locks that it holds. Made by `client.newOwner()`, one for each `client.scope()`.
 * @example
 * const owner = client.newOwner();
 * await client.getLock("stock:42").lock({ owner });
 * await client.getLock("stock:42").unlock({ owner });
 */
export class Owner {
  readonly #record = new OwnerRecord();

  static {
    standFor(Owner.prototype, (owner) => owner.#record);
  }

  /**
   * Runs fn, and all that it awaits, as this owner, which fn gets; resolves with what fn returns.
   * @throws what fn throws; TypeError if it is no function
   */
  async scope<T>(fn: (owner: Owner) => T | Promise<T>): Promise<T> {
    checkFunction(fn, "fn");
    return runInside(openFrame(this.#record, true, currentFrame()), () => fn(this));
  }
}

/** Lets the objects of a class stand for an owner in `options.owner`; `runOf`: for a run of that. */
export function standFor<T extends object>(
  prototype: T,
  ownerOf: (object: T) => OwnerRecord,
  runOf: (object: T) => Frame | undefined = () => undefined,
): void {
  Object.defineProperties(prototype, {
    [OWNER]: {
      get(this: T) {
        return ownerOf(this);
      },
    },
    [RUN]: {
      get(this: T) {
        return runOf(this);
      },
    },
  });
}

/** What `options.owner` names. */
type Standing = { readonly [OWNER]?: OwnerRecord; readonly [RUN]?: Frame } | null | undefined;

/** The owner that `options.owner` names: an Owner, or a Hold (the owner of that hold, also after its unlock). */
export function checkOwner(value: unknown): OwnerRecord | undefined {
  if (value === undefined) return undefined;
  const owner = (value as Standing)?.[OWNER];
  if (!owner) throw new TypeError(`owner must be an Owner or a Hold, not ${received(value)}`);
  return owner;
}

/** The run whose Hold `options.owner` is. */
export function runOf(value: unknown): Frame | undefined {
  return (value as Standing)?.[RUN];
}
