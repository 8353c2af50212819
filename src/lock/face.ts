/** The face of every lock, and of a group of locks: all that does not depend on how it is acquired. */
import { checkFunction, checkOptions, checkWait } from "../base/arguments.js";
import { callChannel, isHeard, traceCall } from "../base/channels.js";
import {
  isLockError,
  LockLostError,
  LockNotOwnerError,
  LockTimeoutError,
  THIS_PROCESS,
} from "../base/errors.js";
import { noop } from "../base/work.js";
import type { Env } from "../env.js";
import {
  ambientOwner,
  callerOf,
  currentFrame,
  type Frame,
  openFrame,
  runInside,
  scopeOwner,
} from "../owner/context.js";
import { OwnerRecord, type OwnLock } from "../owner/owner.js";
import type { Side, Wanted } from "../waiting/wanted.js";
import { type Hold, recordOf } from "./hold.js";
import type { HoldRecord } from "./hold-record.js";
import {
  type Asked,
  checkRequest,
  LOCK_OPTIONS,
  type LockOptions,
  namedOwner,
  type OwnerOptions,
  type Request,
  TRY_OPTIONS,
  type TryLockOptions,
} from "./options.js";

const TRY_LOCK_ORDER =
  "tryLock takes tryLock(wait, lease, { signal, owner }), in Redisson's order: wait must be a number of milliseconds, not an " +
  "object. lock({ wait }) and run(fn, { wait }) take options";

/** Milliseconds before the end of a wait. */
const SOON = 250;

/** The function that the user called. */
type Called = (...args: never[]) => unknown;

/** A lock object keeps nothing of a call, so one object serves any number of tasks. */
export abstract class LockFace<H extends Hold = Hold> {
  /** The name as the user gave it, without the prefix. Of a group: the members' names, joined by ",". */
  readonly name: string;
  readonly #wanted: OwnLock;
  readonly #env: Env;

  /** @internal */
  constructor(wanted: OwnLock) {
    this.name = wanted.lockName;
    this.#wanted = wanted;
    this.#env = wanted.env;
  }

  /**
   * Waits until the lock is granted, without limit unless `wait` is given.
   * @throws WAIT_TIMEOUT if `wait` milliseconds were not enough; `signal.reason` if the signal aborts first
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, REPLICAS, CLIENT_CLOSED, LOCK_LOST (the grant came too late),
   * UPGRADE_REFUSED (of a write side), QUORUM (of a RedLock)
   */
  lock(options?: LockOptions): Promise<H> {
    try {
      const request = checkRequest(checkOptions(options, LOCK_OPTIONS, "lock"));
      return this.#start(request, this.lock) as Promise<H>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Tries for `wait` milliseconds (once if absent or 0), for a lease of `lease` milliseconds (renewed if absent).
   * Resolves with null if others still hold the lock.
   * @throws as {@link lock}, but for WAIT_TIMEOUT
   */
  tryLock(wait?: number, lease?: number, options?: TryLockOptions): Promise<H | null> {
    try {
      const { signal, owner } = checkOptions(options, TRY_OPTIONS, "tryLock");
      if (typeof wait === "object" && wait !== null) throw new TypeError(TRY_LOCK_ORDER);
      const request = checkRequest({ wait: checkWait(wait) ?? 0, lease, signal, owner });
      return this.#start(request, this.tryLock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Takes the lock, runs fn and gives it back. It waits without limit unless `wait` is given, and renews the lease while
   * fn runs unless `lease` is given. Inside fn further calls on this lock re-enter; parallel runs of one owner take turns.
   * What fn throws always wins.
   * @throws as {@link lock}, and LOCK_LOST if fn succeeded but the hold was lost before its end
   */
  async run<T>(fn: (hold: H) => T | Promise<T>, options?: LockOptions): Promise<T> {
    checkFunction(fn, "fn");
    const request = checkRequest(checkOptions(options, LOCK_OPTIONS, "run"));
    // All runs of a tree act for one owner. A named owner is also the ambient owner inside fn.
    const named = request.owner;
    const owner =
      named ?? (this.#env.followsContext ? currentFrame()?.owner : undefined) ?? new OwnerRecord();
    const frame = openFrame(owner, named !== undefined, callerOf(request.within), this.#wanted.turnKeys);
    const hold = (await this.#start(request, this.run, frame)) as H;
    const record = recordOf(hold);
    let outcome: { value: T } | { error: unknown };
    try {
      outcome = { value: await runInside(frame, () => fn(hold)) };
    } catch (error) {
      outcome = { error };
    }
    const loss = await this.#finish(record, frame, owner);
    if ("error" in outcome) throw outcome.error;
    if (loss) throw new LockLostError(this.name, loss.reason, loss.since, outcome);
    return outcome.value;
  }

  /**
   * Gives back the innermost hold that the current scope (or `owner`) took by `lock()` or `tryLock()` on this lock.
   * @throws NOT_OWNER outside a scope, or if there is no such hold; LOCK_LOST, UNAVAILABLE as {@link Hold.unlock}
   */
  async unlock(options?: OwnerOptions): Promise<void> {
    const owner = namedOwner(options, "unlock") ?? (this.#env.followsContext ? scopeOwner() : undefined);
    const open = owner?.innermost(({ lockKey, side }) => this.#isOn(lockKey, side));
    if (open) return open.release();
    if (owner?.isAsking(({ wanted: { lockKey, traits } }) => this.#isOn(lockKey, traits.side))) {
      throw new LockNotOwnerError(
        this.name,
        `lock "${this.name}": a lock() or tryLock() of this owner is still under way; await it before unlock()`,
      );
    }
    throw new LockNotOwnerError(this.name, this.#whyNotOwner(owner));
  }

  /**
   * The innermost hold of the current owner that is still held; null outside a scope or run, or without a hold. Sends
   * nothing.
   */
  abstract currentHold(): H | null;

  /**
   * Gives the lock back, whoever holds it. Resolves with whether it was held, once its holders of this client are told.
   * Other holders learn it at their next renewal, extend, nested call or unlock: a message would need a subscription for
   * each hold.
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
   * How many holds the current owner has here; 0 if Redis has nothing of it any more. 0 without asking if the owner has no
   * hold here.
   * @throws as {@link forceUnlock}
   */
  abstract getHoldCount(options?: OwnerOptions): Promise<number>;

  /** Resolves with null if it is not granted within the `wait`. @internal */
  protected abstract acquire(asked: Asked): Promise<H | null>;

  /** The owner for whom a call that names none is made. @internal */
  protected currentOwner(): OwnerRecord | undefined {
    return this.#env.followsContext ? ambientOwner(this.#wanted.turnKeys) : undefined;
  }

  /** Whether a hold or a call is on this lock, on this side. */
  #isOn(lockKey: string, side: Side): boolean {
    return lockKey === this.#wanted.lockKey && side === this.#wanted.traits.side;
  }

  /** `called`: the function that the user called. `frame`: of a run. */
  #start(request: Request, called: Called, frame?: Frame): Promise<H | null> {
    const { wait, lease, signal } = request;
    if (signal?.aborted) throw signal.reason;
    const { clock, places } = this.#env;
    const begun = clock.mono();
    const caller = frame ? frame.parent : callerOf(request.within);
    const owner = frame?.owner ?? request.owner ?? (caller && this.currentOwner());
    // Only a bare hold without a lease, of an owner that nobody knows, can be dropped for ever.
    const canDrop = owner === undefined && lease === undefined;
    const place = canDrop ? places.note(begun, called) : undefined;
    const asked: Asked = { wait, lease, signal, owner, frame, caller, begun, place };
    // tryLock() resolves with null instead.
    const isBound = called !== this.tryLock && wait !== Number.POSITIVE_INFINITY;
    if (!isHeard(callChannel)) return isBound ? this.#inTime(asked) : this.acquire(asked);
    const call = async () => (isBound ? this.#inTime(asked) : this.acquire(asked));
    const { lockName, kind } = this.#wanted;
    return traceCall({ clientId: this.#env.clientId, lockName, kind }, asked, call);
  }

  /** Of a call that has to be granted in time: otherwise it rejects, and tells who holds the lock. */
  async #inTime(asked: Asked): Promise<H> {
    const { begun, wait } = asked;
    const { clock } = this.#env;
    let holder: Promise<string | undefined> | undefined;
    const ask = () => {
      holder = this.#holder();
    };
    // A moment before the wait is over, so that the error is not late for the answer. Without a wait nobody is asked.
    const cancel = wait > 0 ? clock.after(Math.max(wait / 2, wait - SOON), ask) : noop;
    const hold = await this.acquire(asked).finally(cancel);
    if (hold) return hold;
    const waited = clock.mono() - begun;
    const isOwn = this.#wanted.parts.some(({ env, key }) => env.live.get(key)?.isHeld);
    const told = (await Promise.race([holder, undefined])) ?? (isOwn ? THIS_PROCESS : undefined);
    throw new LockTimeoutError(this.name, waited, { holder: told });
  }

  /** The holder of the lock, in words for people, as far as it is known soon. A server that is away is not asked. */
  async #holder(): Promise<string | undefined> {
    const isNear = ({ env, key }: Wanted) => !env.runner.servers.isAway(key);
    const near = this.#wanted.parts.filter(isNear);
    const envs = [...new Set(near.map(({ env }) => env))];
    const told = envs.map(({ inspector }) =>
      inspector.whoHolds(near.filter(({ env }) => env.inspector === inspector)),
    );
    return (await Promise.all(told)).find((holder) => holder !== undefined);
  }

  #whyNotOwner(owner: OwnerRecord | undefined): string {
    const unnamed = this.#env.followsContext
      ? [
          "unlock() outside a scope does not know whose hold to give back",
          "call hold.unlock() on what lock() resolved with, or put lock() and unlock() inside one client.scope()",
        ]
      : [
          "unlock() without an owner does not know whose hold to give back",
          "call hold.unlock() on what lock() resolved with, or name the owner: unlock({ owner })",
        ];
    const [what, cure] = owner
      ? [
          "nothing to unlock: this owner has no open lock() or tryLock() of this lock",
          "if another call took it, unlock the hold that it resolved with",
        ]
      : unnamed;
    return `lock "${this.name}": ${what}; ${cure}. A run() gives its hold back by itself when its function ends`;
  }

  /** Gives back the hold of a run, unless fn did; resolves with the loss if the hold was lost before. */
  async #finish(hold: HoldRecord, frame: Frame, owner: OwnerRecord): Promise<LockLostError | undefined> {
    try {
      const released = hold.isReturned ? undefined : hold.release();
      // A sibling run may begin now.
      for (const key of this.#wanted.turnKeys) owner.endRun(key, frame);
      await released;
    } catch (cause) {
      if (isLockError(cause, "LOCK_LOST")) return hold.loss;
      this.#wanted.emit("error", { cause }, hold.grant);
    }
    return hold.loss;
  }
}
