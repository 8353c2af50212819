/** The fenced lock: the plain lock, and a counter beside it from which each outermost grant takes a token. */
import type { LockKind } from "../base/events.js";
import { tokenCounter, tombstone } from "../base/names.js";
import type { Passed, Successor } from "../engine/acquisition.js";
import { type Acquired, DONE, type Try } from "../locks/backend.js";
import { Hold } from "../locks/hold.js";
import { LOCK_VERBS, Lock } from "../locks/lock.js";
import type { Grant } from "../locks/owner-lock.js";
import { fencedAcquire, fencedOldPass } from "../scripts/generated.js";
import type { AnyCall } from "./calls.js";
import { HashBackend } from "./hash.js";
import { passArguments, passKeys } from "./passing.js";

export class FencedBackend extends HashBackend {
  override get kind(): LockKind {
    return "fenced";
  }

  protected override acquiring({ wireId, lease }: Try): AnyCall {
    const { key } = this;
    const keys = { lock: key, tombstone: tombstone(key, wireId), counter: tokenCounter(key) };
    return this.call(fencedAcquire, keys, { owner: wireId, lease });
  }

  protected override readAcquired(reply: unknown, attempt: Try): Acquired {
    const [granted, token] = reply as unknown[];
    if (Number(granted) !== DONE) return super.readAcquired(reply, attempt);
    return { granted: true, token: BigInt(token as string) };
  }

  protected override passing(wireId: string, successor: Successor): AnyCall {
    const keys = { counter: tokenCounter(this.key), ...passKeys(this, wireId, successor) };
    return this.call(fencedOldPass, keys, passArguments(this.publish, wireId, successor));
  }

  protected override readPassed(reply: readonly unknown[]): Passed {
    const passed = super.readPassed(reply);
    return passed.granted ? { token: BigInt(reply[2] as string), ...passed } : passed;
  }
}

/**
 * A hold on a fenced lock.
 * @example
 * const hold = await client.getFencedLock("invoice").lock();
 * await sell("42", { newerThan: hold.token });
 * await hold.unlock();
 */
export class FencedHold extends Hold {
  /**
   * Rises strictly with each outermost grant of this lock, also over expiry, force-unlock and restarts. A nested hold has
   * the token of the outermost one. A resource that remembers the highest token it has seen, and refuses lower ones, is
   * safe from a holder that writes after its lease (fencing, as described by Kleppmann 2016).
   */
  readonly token: bigint;

  /** Holds are made by locks. @internal */
  constructor(grant: Grant) {
    super(grant, LOCK_VERBS);
    this.token = grant.token as bigint;
  }
}

/**
 * A reentrant lock whose holds carry a fencing token.
 * @example
 * await client.getFencedLock("invoice").run((hold) => sell("42", { newerThan: hold.token }));
 */
export class FencedLock extends Lock<FencedHold> {
  /** @internal */
  protected override makeHold(grant: Grant): FencedHold {
    return new FencedHold(grant);
  }
}
