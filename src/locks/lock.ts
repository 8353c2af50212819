/**
 * The face that every kind of lock has. Turns arguments into one claim; nothing of a call is ever kept on a lock
 * object, so one object serves any number of tasks.
 */
import { checkFunction, checkOptions, checkWait } from "../base/arguments.js";
import { isLockError, LockLostError, LockNotOwnerError, LockTimeoutError } from "../base/errors.js";
import { ambientOwner, type Frame, openFrame, type Party, runInside, scopeOwner } from "../owners/context.js";
import { checkOwner } from "../owners/owner.js";
import {
  type Ask,
  checkAsk,
  LOCK_OPTIONS,
  type LockOptions,
  OWNER_OPTIONS,
  type OwnerOptions,
  TRY_OPTIONS,
  type TryLockOptions,
} from "./call-options.js";
import { Claim } from "./claim.js";
import type { Env } from "./env.js";
import { forceUnlock } from "./force.js";
import type { Grant } from "./grant.js";
import { Hold } from "./hold.js";
import { eventOf } from "./holdings.js";
import type { Primitive } from "./primitive.js";
import { Tenure } from "./tenure.js";

/** What a call got: a hold, and where it is kept. */
interface Taken {
  readonly grant: Grant;
  readonly tenure: Tenure;
}

/** A reentrant lock, not fair. The lock is its client and name, not this object. `H`: what its holds are. */
export class Lock<H extends Hold = Hold> {
  readonly name: string;
  readonly #env: Env;
  readonly #primitive: Primitive;
  readonly #key: string;

  /** Locks are made by a LockClient. */
  constructor(env: Env, primitive: Primitive) {
    this.name = primitive.lockName;
    this.#env = env;
    this.#primitive = primitive;
    this.#key = `${env.clientId}/${primitive.key}`;
  }

  /**
   * Waits until the lock is granted.
   * @throws WAIT_TIMEOUT if `wait` milliseconds were not enough; `signal.reason` if the signal aborts first
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, REPLICAS, CLIENT_CLOSED, LOCK_LOST (the grant came too late),
   * UPGRADE_REFUSED (of a write side)
   */
  async lock(options?: LockOptions): Promise<H> {
    const begun = this.#env.clock.mono();
    const ask = checkAsk(checkOptions(options, LOCK_OPTIONS, "lock"), this.#key, "bare");
    return this.#hold(this.#require(await this.#acquire(ask), begun), ask);
  }

  /**
   * Tries for `wait` milliseconds (once if absent or 0), for a lease of `lease` milliseconds (renewed if absent).
   * Resolves with null if the lock stayed with others.
   * @throws as {@link lock}, but for WAIT_TIMEOUT
   */
  async tryLock(wait?: number, lease?: number, options?: TryLockOptions): Promise<H | null> {
    const { signal, owner } = checkOptions(options, TRY_OPTIONS, "tryLock");
    const ask = checkAsk({ wait: checkWait(wait) ?? 0, lease, signal, owner }, this.#key, "bare");
    const taken = await this.#acquire(ask);
    return taken ? this.#hold(taken, ask) : null;
  }

  /**
   * Takes the lock, runs fn and gives it back. Inside fn further calls on this lock re-enter; parallel runs of one
   * owner take turns. What fn throws always wins.
   * @throws as {@link lock}, and LOCK_LOST if fn succeeded but the hold was lost before its end
   */
  async run<T>(fn: (hold: H) => T | Promise<T>, options?: LockOptions): Promise<T> {
    checkFunction(fn, "fn");
    const checked = checkOptions(options, LOCK_OPTIONS, "run");
    const ask = checkAsk(checked, this.#key, "run");
    // An owner that is named is the ambient one for fn.
    const scope = checked.owner === undefined ? undefined : openFrame(ask.owner);
    const frame = openFrame(ask.owner, this.#key, scope);
    const begun = this.#env.clock.mono();
    const taken = this.#require(await this.#acquire({ ...ask, frame }), begun);
    const hold = this.#hold(taken, ask);
    let outcome: { value: T } | { error: unknown };
    try {
      outcome = { value: await runInside(frame, () => fn(hold)) };
    } catch (error) {
      outcome = { error };
    }
    if (scope) scope.open = false;
    const loss = await this.#finish(taken, frame);
    if ("error" in outcome) throw outcome.error;
    if (loss) throw new LockLostError(this.name, loss.reason, loss.since, outcome);
    return outcome.value;
  }

  /**
   * Gives back the innermost hold that the current scope (or `owner`) took by `lock()` or `tryLock()` on this lock.
   * @throws NOT_OWNER outside a scope, or if there is none; LOCK_LOST, UNAVAILABLE as {@link Hold.unlock}
   */
  async unlock(options?: OwnerOptions): Promise<void> {
    const owner = checkOwner(checkOptions(options, OWNER_OPTIONS, "unlock").owner) ?? scopeOwner();
    const released = this.#stake(owner)?.returns.releaseInnermost(this.#primitive.side);
    if (released) return released;
    throw new LockNotOwnerError(
      this.name,
      owner
        ? `lock "${this.name}": this owner holds it by no lock() or tryLock() of its own`
        : `lock "${this.name}": unlock() outside a scope does not know whose hold to give back; ` +
            "call hold.unlock(), or work inside client.scope()",
    );
  }

  /** Gives the lock back whoever holds it; resolves with whether anybody did. */
  async forceUnlock(): Promise<boolean> {
    this.#env.assertOpen(this.name);
    const { link } = this.#env;
    if (!link.prepared) await link.prepare(this.name, link.commandTimeout);
    return forceUnlock(this.#env, this.#primitive);
  }

  /** Whether anybody holds it. */
  async isLocked(): Promise<boolean> {
    this.#env.assertOpen(this.name);
    return (await this.#primitive.state("")).held;
  }

  /** Whether the current owner holds it, by the word of Redis. */
  async isHeldByCurrentOwner(options?: OwnerOptions): Promise<boolean> {
    return (await this.getHoldCount(options)) > 0;
  }

  /** How many holds the current owner has, by the word of Redis; 0 without asking if it has none here. */
  async getHoldCount(options?: OwnerOptions): Promise<number> {
    const owner =
      checkOwner(checkOptions(options, OWNER_OPTIONS, "options").owner) ?? ambientOwner(this.#key);
    this.#env.assertOpen(this.name);
    const wireId = this.#stake(owner)?.wireId;
    return wireId === undefined ? 0 : (await this.#primitive.state(wireId)).count;
  }

  /** Milliseconds until the lock lapses if nobody renews it; -2 when it is free. */
  async remainTimeToLive(): Promise<number> {
    this.#env.assertOpen(this.name);
    return (await this.#primitive.state("")).ttl;
  }

  /** How holds of this kind look to users. */
  protected makeHold(grant: Grant, tenure: Tenure, owner: Party): H {
    return new Hold(grant, tenure, owner) as H;
  }

  #hold({ grant, tenure }: Taken, { owner }: Ask): H {
    return this.makeHold(grant, tenure, owner);
  }

  #require(taken: Taken | undefined, begun: number): Taken {
    if (taken) return taken;
    throw new LockTimeoutError(this.name, this.#env.clock.mono() - begun);
  }

  async #acquire(ask: Ask): Promise<Taken | undefined> {
    const { clock, engine, events, settings } = this.#env;
    if (ask.signal?.aborted) throw ask.signal.reason;
    const begun = clock.mono();
    this.#env.assertOpen(this.name);
    const tenure = this.#stake(ask.owner) ?? new Tenure(this.#env, ask.owner, this.#key);
    const claim = new Claim({
      tenure,
      primitive: this.#primitive,
      origin: ask.origin,
      lease: ask.lease ?? settings.watchdogTimeout,
      renewed: ask.lease === undefined,
      frame: ask.frame,
      caller: ask.caller,
    });
    const grant = await engine.acquire(claim, ask.wait, ask.signal);
    if (!grant) return undefined;
    grant.announced = true;
    if (events.heard("acquired")) {
      const waited = clock.mono() - begun;
      events.emit("acquired", { ...eventOf(this.#primitive), ownerId: grant.wireId, waited });
    }
    return { grant, tenure };
  }

  /** Gives back the hold of a run, unless fn did; resolves with the loss if it was lost before. */
  async #finish({ grant, tenure }: Taken, frame: Frame): Promise<LockLostError | undefined> {
    try {
      const released = grant.outcome ? undefined : tenure.returns.release(grant);
      // From here on a sibling may begin: its commands come after the release.
      tenure.endRun(frame);
      await released;
    } catch (error) {
      if (!isLockError(error, "LOCK_LOST")) {
        this.#env.events.emit("error", { ...eventOf(this.#primitive), ownerId: grant.wireId, cause: error });
      }
    }
    return grant.loss;
  }

  #stake(owner: Party | undefined): Tenure | undefined {
    return owner?.stakes.get(this.#key) as Tenure | undefined;
  }
}
