/** One lock: turns each call into one acquisition. The backend knows how each step looks on the wire. */
import { tellCaller } from "../base/caller.js";
import type { LockCallContext } from "../base/channels.js";
import type { LockEvent } from "../base/events.js";
import { ambientOwner, type Frame, type OwnerRecord, openFrame } from "../owners/context.js";
import { LockAcquisition } from "./acquire.js";
import {
  type LockRequest,
  namedOwner,
  type OwnedRequest,
  type OwnerOptions,
  ownerOf,
} from "./acquisition-options.js";
import { type Backend, eventOf, type LockState } from "./backend.js";
import { endRun } from "./commands.js";
import { Env } from "./env.js";
import { force } from "./force.js";
import { Hold, viewOf } from "./hold.js";
import type { HoldVerbs } from "./hold-record.js";
import { hasOpenHold, innermostOn } from "./holds.js";
import { LockFace } from "./lock-face.js";
import { dropExpired, wireIdOf } from "./loss.js";
import { type Grant, knownLockOf, type LockTable, type OwnerLock, ownerLockOf } from "./owner-lock.js";
import { extend, release, releaseInnermost } from "./release.js";
import { tellGrant } from "./telling.js";

/** The verbs of a hold on one lock. */
export const LOCK_VERBS: HoldVerbs<Grant> = {
  check: ({ own }) => dropExpired(own),
  extend,
  release,
};

/** The inside of a lock, for groups that it is a member of. */
export interface LockParts {
  readonly table: LockTable;
  readonly backend: Backend;
  /** The key by which owners know the lock. */
  readonly key: string;
  makeHold(grant: Grant): Hold;
}

/** A lock shows its parts under this symbol, so that another copy of the library in the process finds them too. */
const PARTS = Symbol.for("holdfast.lock");

/** @throws TypeError for anything but what a LockClient passes */
export function checkTable(table: Partial<LockTable> | undefined): void {
  if (table?.env instanceof Env) return;
  throw new TypeError("locks are made by a LockClient: client.getLock(name) and its like, not by new");
}

/** The parts of a lock; undefined for anything else. */
export function partsOf(lock: unknown): LockParts | undefined {
  if (typeof lock !== "object" || lock === null) return undefined;
  return (lock as { [PARTS]?: () => LockParts })[PARTS]?.();
}

/**
 * A reentrant lock, not fair. The lock is its client and name, not this object. `H`: what its holds are.
 * @example
 * const hold = await client.getLock("stock:42").tryLock(500, 10_000);
 * if (hold === null) throw new Error("somebody else had it for half a second");
 * try {
 *   await sell("42");
 * } finally {
 *   await hold.unlock();
 * }
 */
export class Lock<H extends Hold = Hold> extends LockFace<H> {
  readonly #table: LockTable;
  readonly #backend: Backend;
  readonly #key: string;

  static {
    const parts = function (this: Lock): LockParts {
      return {
        table: this.#table,
        backend: this.#backend,
        key: this.#key,
        makeHold: (grant) => this.makeHold(grant),
      };
    };
    // Not declared as a member, so that it is not part of the public type.
    Object.defineProperty(Lock.prototype, PARTS, { value: parts });
  }

  /** Locks are made by a LockClient. @internal */
  constructor(table: LockTable, backend: Backend) {
    checkTable(table);
    const { env } = table;
    const key = env.lockKey(backend.key);
    super(backend.lockName, key, env.clock, table.bareCalls, env.settings.traceHolds);
    this.#table = table;
    this.#backend = backend;
    this.#key = key;
  }

  override async forceUnlock(): Promise<boolean> {
    const { wasHeld, told } = await force(this.#table, this.#backend).catch(tellCaller);
    await told;
    return wasHeld;
  }

  override currentHold(): H | null {
    const own = knownLockOf(ambientOwner(this.#key), this.#key);
    const grant = own && innermostOn(own, this.#backend.side);
    return grant ? viewOf<Grant, H>(grant, (each) => this.makeHold(each)) : null;
  }

  override async isLocked(): Promise<boolean> {
    this.#table.env.assertOpen(this.name);
    return (await this.#state("")).held;
  }

  override async isHeldByCurrentOwner(options?: OwnerOptions): Promise<boolean> {
    return (await this.#count(options, "isHeldByCurrentOwner")) > 0;
  }

  override async getHoldCount(options?: OwnerOptions): Promise<number> {
    return this.#count(options, "getHoldCount");
  }

  /** `where`: the call whose options these are. */
  async #count(options: OwnerOptions | undefined, where: string): Promise<number> {
    const named = namedOwner(options, where);
    const owner = ownerOf(named, this.#key);
    this.#table.env.assertOpen(this.name);
    const wireId = wireIdOf(knownLockOf(owner, this.#key));
    return wireId === undefined ? 0 : (await this.#state(wireId)).count;
  }

  override async remainTimeToLive(): Promise<number> {
    this.#table.env.assertOpen(this.name);
    return (await this.#state("")).ttl;
  }

  #state(wireId: string): Promise<LockState> {
    return this.#backend.state(wireId).catch(tellCaller);
  }

  /** How holds of this kind look to users. @internal */
  protected makeHold(grant: Grant): H {
    return new Hold(grant, LOCK_VERBS) as H;
  }

  /** @internal */
  protected override holder(): Promise<string | undefined> {
    return this.#table.env.whoHolds([{ name: this.name, key: this.#backend.key }]);
  }

  /** @internal */
  protected override about(): LockCallContext {
    return { clientId: this.#table.env.clientId, lockName: this.name, kind: this.#backend.kind };
  }

  /** @internal */
  protected override async acquire(request: LockRequest): Promise<H | undefined> {
    const { lease, wait, signal, owner, frame, caller, begun } = request;
    const { env } = this.#table;
    if (signal?.aborted) throw signal.reason;
    env.assertOpen(this.name);
    const backend = this.#backend;
    const own = ownerLockOf(this.#table, owner, backend.key);
    const origin = frame ? "run" : "bare";
    const call = new LockAcquisition({ own, backend, origin, lease, frame, caller });
    const number = env.mint();
    call.number = number;
    let grant: Grant | undefined;
    try {
      grant = await env.engine.acquire(call, wait, signal);
    } catch (error) {
      env.events.tellEnd(this.#told(own, number), request, env.clock.mono() - begun, error);
      return tellCaller(error);
    }
    const waited = env.clock.mono() - begun;
    if (!grant) {
      env.events.tellEnd(this.#told(own, number), request, waited);
      return undefined;
    }
    tellGrant(env, backend, grant, waited, request.callSite);
    const hold = this.makeHold(grant);
    if (owner) grant.view = hold;
    return this.handOut(hold, request);
  }

  /** The event of a call that was not granted; `number`: in its first wire id. */
  #told(own: OwnerLock, number: number): LockEvent {
    const { env } = this.#table;
    return { ...eventOf(this.#backend), ownerId: wireIdOf(own) ?? env.wireId(number) };
  }

  /** @internal */
  protected override openFrame(request: OwnedRequest, scope: Frame | undefined): Frame {
    return openFrame(request.owner, this.#key, scope);
  }

  /** @internal */
  protected override endRun(frame: Frame): void {
    endRun(knownLockOf(frame.owner, this.#key), frame);
  }

  /** @internal */
  protected override releaseInnermost(owner: OwnerRecord): Promise<void> | undefined {
    const own = knownLockOf(owner, this.#key);
    return own && releaseInnermost(own, this.#backend);
  }

  /** @internal */
  protected override hasBareHold(): boolean {
    return this.#table.live.all().some((own) => hasOpenHold(own, this.#backend));
  }

  /** @internal */
  protected override report(cause: unknown, ownerId: string): void {
    this.#table.env.events.emit("error", { ...eventOf(this.#backend), ownerId, cause });
  }
}
