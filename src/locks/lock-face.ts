/** The face of every lock, and of a group of locks: all that does not depend on how it is acquired. */

import { checkFunction, checkOptions, checkWait } from "../base/arguments.js";
import { CallSite } from "../base/call-site.js";
import { tellCaller } from "../base/caller.js";
import { callChannel, isHeard, type LockCallContext, traceCall } from "../base/channels.js";
import type { Clock } from "../base/clock.js";
import { isLockError, LockLostError, LockNotOwnerError, LockTimeoutError } from "../base/errors.js";
import {
  actorOf,
  type Frame,
  isInsideRun,
  type OwnerRecord,
  openFrame,
  runInside,
  scopeOwner,
} from "../owners/context.js";
import {
  checkRequest,
  LOCK_OPTIONS,
  type LockOptions,
  type LockRequest,
  namedOwner,
  type OwnedRequest,
  type OwnerOptions,
  owned,
  TRY_OPTIONS,
  type TryLockOptions,
} from "./acquisition-options.js";
import type { BareCalls, Called } from "./bare-calls.js";
import { type Hold, partsOfHold } from "./hold.js";
import type { Wanted } from "./own-holds.js";

const TRY_LOCK_ORDER =
  "tryLock takes tryLock(wait, lease, { signal, owner }), in Redisson's order: wait must be a number of milliseconds, not an " +
  "object. lock({ wait }) and run(fn, { wait }) take options";

/** Enough frames to see past an entry of the package, such as a decorator. */
const TRACED_FRAMES = 10;

/** A lock object keeps nothing of a call, so one object serves any number of tasks. */
export abstract class LockFace<H extends Hold = Hold> {
  /** The name as the user gave it, without the prefix. Of a group: the members' names, joined by ",". */
  readonly name: string;
  readonly #key: string;
  readonly #wanted: Wanted;
  readonly #clock: Clock;
  readonly #bareCalls: BareCalls;
  readonly #traces: boolean;

  /**
   * `key`: the name under which owners keep the lock. `traces`: the call sites of its calls are noted. `wanted`: what its
   * calls may have to wait for, if that is not this one lock. @internal
   */
  constructor(
    name: string,
    key: string,
    clock: Clock,
    bareCalls: BareCalls,
    traces: boolean,
    wanted: Wanted = key,
  ) {
    this.name = name;
    this.#key = key;
    this.#wanted = wanted;
    this.#clock = clock;
    this.#bareCalls = bareCalls;
    this.#traces = traces;
  }

  /**
   * Waits until the lock is granted.
   * @throws WAIT_TIMEOUT if `wait` milliseconds were not enough; `signal.reason` if the signal aborts first
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, REPLICAS, CLIENT_CLOSED, LOCK_LOST (the grant came too late),
   * UPGRADE_REFUSED (of a write side), QUORUM (of a RedLock)
   */
  async lock(options?: LockOptions): Promise<H> {
    const checked = checkOptions(options, LOCK_OPTIONS, "lock");
    const request = checkRequest(checked, this.#key, this.#clock.mono(), true);
    return (await this.#take(request, this.lock)) ?? this.#timedOut(request);
  }

  /**
   * Tries for `wait` milliseconds (once if absent or 0), for a lease of `lease` milliseconds (renewed if absent).
   * Resolves with null if the lock stayed with others.
   * @throws as {@link lock}, but for WAIT_TIMEOUT
   */
  async tryLock(wait?: number, lease?: number, options?: TryLockOptions): Promise<H | null> {
    const { signal, owner } = checkOptions(options, TRY_OPTIONS, "tryLock");
    if (typeof wait === "object" && wait !== null) throw new TypeError(TRY_LOCK_ORDER);
    const checked = { wait: checkWait(wait) ?? 0, lease, signal, owner };
    const request = checkRequest(checked, this.#key, this.#clock.mono(), true);
    return (await this.#take(request, this.tryLock)) ?? null;
  }

  /**
   * Takes the lock, runs fn and gives it back. Inside fn further calls on this lock re-enter; parallel runs of one
   * owner take turns. What fn throws always wins.
   * @throws as {@link lock}, and LOCK_LOST if fn succeeded but the hold was lost before its end
   */
  async run<T>(fn: (hold: H) => T | Promise<T>, options?: LockOptions): Promise<T> {
    checkFunction(fn, "fn");
    const checked = checkOptions(options, LOCK_OPTIONS, "run");
    const request = owned(checkRequest(checked, this.#key, this.#clock.mono(), false));
    // A named owner is also the ambient owner inside fn.
    const scope = request.named ? openFrame(request.named) : undefined;
    const frame = this.openFrame(request, scope);
    const hold = (await this.#take({ frame, ...request }, this.run)) ?? (await this.#timedOut(request));
    let outcome: { value: T } | { error: unknown };
    try {
      outcome = { value: await runInside(frame, () => fn(hold), request.caller) };
    } catch (error) {
      outcome = { error };
    }
    const loss = await this.#finish(hold, frame);
    if ("error" in outcome) throw outcome.error;
    if (loss) throw new LockLostError(this.name, loss.reason, loss.since, outcome);
    return outcome.value;
  }

  /**
   * Gives back the innermost hold that the current scope (or `owner`) took by `lock()` or `tryLock()` on this lock.
   * @throws NOT_OWNER outside a scope, or if there is no such hold; LOCK_LOST, UNAVAILABLE as {@link Hold.unlock}
   */
  async unlock(options?: OwnerOptions): Promise<void> {
    const named = namedOwner(options, "unlock") ?? scopeOwner();
    const owner = named && actorOf(named, this.#key);
    const released = owner && this.releaseInnermost(owner);
    if (released) return released.catch(tellCaller);
    throw new LockNotOwnerError(this.name, this.#whyNotOwner(owner));
  }

  /**
   * The innermost hold of the current owner that is still held; null outside a scope or run, or without a hold. Sends
   * nothing.
   */
  abstract currentHold(): H | null;

  /**
   * Gives the lock back, whoever holds it. Resolves with whether it was held, once the holders in this process are told.
   * Holders in other processes learn it at their next renewal, extend, nested call or unlock.
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, CLIENT_CLOSED
   */
  abstract forceUnlock(): Promise<boolean>;

  /**
   * Whether the lock is held, by any owner.
   * @throws as {@link forceUnlock}
   */
  abstract isLocked(): Promise<boolean>;

  /**
   * Milliseconds until the lock expires if it is not renewed; -2 when it is free.
   * @throws as {@link forceUnlock}
   */
  abstract remainTimeToLive(): Promise<number>;

  /**
   * Whether the current owner holds the lock, by the word of Redis; false without asking if the owner has no hold here.
   * @throws as {@link forceUnlock}
   */
  abstract isHeldByCurrentOwner(options?: OwnerOptions): Promise<boolean>;

  /**
   * How many holds the current owner has, by the word of Redis; 0 without asking if the owner has no hold here.
   * @throws as {@link forceUnlock}
   */
  abstract getHoldCount(options?: OwnerOptions): Promise<number>;

  /** The holder of the lock, in words for people, as far as it is known soon. @internal */
  protected abstract holder(): Promise<string | undefined>;

  /** What subscribers of the diagnostics channels are told about each call. @internal */
  protected abstract about(): LockCallContext;

  /** @internal */
  protected abstract acquire(request: LockRequest): Promise<H | undefined>;

  /** The innermost frame of a run, inside `scope` or else the current one. @internal */
  protected abstract openFrame(request: OwnedRequest, scope: Frame | undefined): Frame;

  /** A run is over: from here on a sibling may begin. @internal */
  protected abstract endRun(frame: Frame): void;

  /** Gives back the innermost hold that `lock()` or `tryLock()` took for this owner; undefined if there is none. @internal */
  protected abstract releaseInnermost(owner: OwnerRecord): Promise<void> | undefined;

  /** Whether any owner of this client has a hold of the lock by a `lock()` or `tryLock()`. @internal */
  protected abstract hasBareHold(): boolean;

  /** Reports a failure with which no call rejects. @internal */
  protected abstract report(cause: unknown, ownerId: string): void;

  /** Returns the granted hold with which a call is about to resolve. @internal */
  protected handOut(hold: H, request: LockRequest): H {
    if (request.isBare) this.#bareCalls.granted(request, hold, partsOfHold(hold));
    return hold;
  }

  #take(request: LockRequest, called: Called): Promise<H | undefined> {
    if (this.#traces) request.callSite = new CallSite(called, TRACED_FRAMES);
    const own = this.#bareCalls.begin(request, this.#wanted, called);
    const work = isHeard(callChannel) ? this.#traced(request, called) : this.acquire(request);
    return own ? this.#bareCalls.warnIfStuck(own, called, work) : work;
  }

  #traced(request: LockRequest, called: Called): Promise<H | undefined> {
    const refuse = called === this.tryLock ? undefined : () => this.#timedOut(request);
    return traceCall(this.about(), request, () => this.acquire(request), refuse).catch(tellCaller);
  }

  #whyNotOwner(owner: OwnerRecord | undefined): string {
    const [what, cure] = owner
      ? [
          "nothing to unlock: this owner has no open lock() or tryLock() of this lock",
          "call hold.unlock() of another's",
        ]
      : [
          "unlock() outside a scope does not know whose hold to give back",
          "call hold.unlock() of what lock() resolved with, or have lock() and unlock() inside one client.scope()",
        ];
    const bare = this.hasBareHold() ? ". This client holds it by a bare lock()" : "";
    const run = isInsideRun(this.#key)
      ? ". A run() gives its hold back by itself when its function ends"
      : "";
    return `lock "${this.name}": ${what}${bare}; ${cure}${run}`;
  }

  async #timedOut({ wait, begun }: LockRequest): Promise<never> {
    const waited = this.#clock.mono() - begun;
    // A call that does not wait pays for one command only, so the holder is not looked up.
    const holder = wait === 0 ? undefined : await this.holder();
    throw new LockTimeoutError(this.name, waited, { holder });
  }

  /** Gives back the hold of a run, unless fn did; resolves with the loss if the hold was lost before. */
  async #finish(hold: H, frame: Frame): Promise<LockLostError | undefined> {
    const { record, verbs } = partsOfHold(hold);
    try {
      const released = record.outcome ? undefined : verbs.release(record);
      // A sibling run may begin now: the owner sends its commands after the release.
      this.endRun(frame);
      await released;
    } catch (error) {
      if (!isLockError(error, "LOCK_LOST")) this.report(error, record.ownerId);
    }
    return record.loss;
  }
}
