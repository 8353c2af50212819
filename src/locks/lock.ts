/** One lock. Turns a call into one claim; how each step looks on the wire is its primitive's business. */

import { checkOptions } from "../base/arguments.js";
import { tellCaller } from "../base/caller.js";
import { type Frame, openFrame, type Party } from "../owners/context.js";
import { checkOwner } from "../owners/owner.js";
import { type Ask, OWNER_OPTIONS, type OwnedAsk, type OwnerOptions, ownerOf } from "./call-options.js";
import { Claim } from "./claim.js";
import { Env } from "./env.js";
import { forceUnlock } from "./force.js";
import type { Grant } from "./grant.js";
import { Hold } from "./hold.js";
import { LockFace } from "./lock-face.js";
import { eventOf, type LockState, type Primitive } from "./primitive.js";
import { stakeOf, tenureOf, wireIdOf } from "./stakes.js";

/** A lock from the inside: what a group that it is a member of needs. */
export interface LockParts {
  readonly env: Env;
  readonly primitive: Primitive;
  /** By what owners know it. */
  readonly key: string;
  makeHold(grant: Grant): Hold;
}

/** Under this symbol a lock tells its parts, to another copy of the library in the process too. */
const PARTS = Symbol.for("holdfast.lock");

/** The parts of a lock; undefined for anything else. */
export function partsOf(lock: unknown): LockParts | undefined {
  if (typeof lock !== "object" || lock === null) return undefined;
  return (lock as { [PARTS]?: () => LockParts })[PARTS]?.();
}

/** A reentrant lock, not fair. The lock is its client and name, not this object. `H`: what its holds are. */
export class Lock<H extends Hold = Hold> extends LockFace<H> {
  readonly #env: Env;
  readonly #primitive: Primitive;
  readonly #key: string;

  static {
    const parts = function (this: Lock): LockParts {
      return {
        env: this.#env,
        primitive: this.#primitive,
        key: this.#key,
        makeHold: (grant) => this.makeHold(grant),
      };
    };
    // Not declared as a member: it is nobody else's business.
    Object.defineProperty(Lock.prototype, PARTS, { value: parts });
  }

  /** Locks are made by a LockClient. */
  constructor(env: Env, primitive: Primitive) {
    if (!(env instanceof Env)) {
      throw new TypeError("locks are made by a LockClient: client.getLock(name) and its like, not by new");
    }
    const key = env.lockKey(primitive.key);
    super(primitive.lockName, key, env.clock);
    this.#env = env;
    this.#primitive = primitive;
    this.#key = key;
  }

  override async forceUnlock(): Promise<boolean> {
    this.#env.assertOpen(this.name);
    const { link } = this.#env;
    if (!link.prepared) await link.prepare(this.name, link.commandTimeout).catch(tellCaller);
    return forceUnlock(this.#env, this.#primitive).catch(tellCaller);
  }

  override async isLocked(): Promise<boolean> {
    this.#env.assertOpen(this.name);
    return (await this.#state("")).held;
  }

  override async getHoldCount(options?: OwnerOptions): Promise<number> {
    const named = checkOwner(checkOptions(options, OWNER_OPTIONS, "options").owner);
    const owner = ownerOf(named, this.#key);
    this.#env.assertOpen(this.name);
    const wireId = wireIdOf(owner, this.#key);
    return wireId === undefined ? 0 : (await this.#state(wireId)).count;
  }

  override async remainTimeToLive(): Promise<number> {
    this.#env.assertOpen(this.name);
    return (await this.#state("")).ttl;
  }

  #state(wireId: string): Promise<LockState> {
    return this.#primitive.state(wireId).catch(tellCaller);
  }

  /** How holds of this kind look to users. */
  protected makeHold(grant: Grant): H {
    return new Hold(grant) as H;
  }

  protected override async acquire(ask: Ask): Promise<H | undefined> {
    const env = this.#env;
    const { clock, engine, events, settings } = env;
    if (ask.signal?.aborted) throw ask.signal.reason;
    const begun = clock.mono();
    env.assertOpen(this.name);
    const claim = new Claim({
      env,
      tenure: tenureOf(env, ask.owner, this.#primitive.key),
      primitive: this.#primitive,
      origin: ask.frame ? "run" : "bare",
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
    return this.makeHold(grant);
  }

  protected override openFrame(ask: OwnedAsk, scope: Frame | undefined): Frame {
    return openFrame(ask.owner, this.#key, scope);
  }

  protected override endRun(frame: Frame): void {
    stakeOf(frame.owner, this.#key)?.endRun(frame);
  }

  protected override releaseInnermost(owner: Party): Promise<void> | undefined {
    return stakeOf(owner, this.#key)?.releaseInnermost(this.#primitive.side);
  }

  protected override hasBareHold(): boolean {
    return this.#env.live.all().some((holdings) => holdings.hasBareHold(this.#primitive));
  }

  protected override report(cause: unknown, ownerId: string): void {
    this.#env.events.emit("error", { ...eventOf(this.#primitive), ownerId, cause });
  }
}
