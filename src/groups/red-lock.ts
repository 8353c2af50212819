/** The Redlock algorithm: one lock over independent masters, held by a majority of them. */

import { isLockError } from "../base/errors.js";
import type { LockKind } from "../base/events.js";
import type { LockRequest } from "../locks/acquisition-options.js";
import type { Lock } from "../locks/lock.js";
import type { GroupGrant } from "./group-grant.js";
import { Masters } from "./masters.js";
import type { MemberRequest } from "./member-requests.js";
import type { Member } from "./members.js";
import { MultiLock, membersOf } from "./multi-lock.js";
import { RedlockAttempt } from "./redlock-attempt.js";
import { fulfilled, type Settled } from "./settled.js";
import { answerTime, nobodyAnswered, SHORTEST_ANSWER_TIME, tooFewAnswers } from "./votes.js";

const FEWEST = 3;

/**
 * One lock over independent masters (Redlock, https://redis.io/docs/latest/develop/use/patterns/distributed-locks/): held
 * while a majority of the members is. Survives the loss of a minority of the masters. It is only as safe as clocks that
 * run alike and masters that do not forget: one that restarts empty within a lease can vote twice.
 * @example
 * const masters = ["redis://a", "redis://b", "redis://c"].map((url) => LockClient.connect(url));
 * const lock = new RedLock(...masters.map((master) => master.getLock("leader")));
 * await lock.run(() => sell("42"));
 */
export class RedLock extends MultiLock {
  /** @internal */
  protected static override readonly kind: LockKind = "red";
  readonly #masters: Masters;

  /** @throws TypeError as of {@link MultiLock}, and for fewer than three locks */
  constructor(...locks: Lock[]) {
    super(...locks);
    if (locks.length < FEWEST) throw new TypeError(`a RedLock needs at least ${FEWEST} locks`);
    this.#masters = new Masters(membersOf(this));
  }

  /** @internal */
  protected static override quorumOf(members: number): number {
    return Math.floor(members / 2) + 1;
  }

  /** @internal */
  protected override async collect(
    requests: readonly MemberRequest[],
    request: LockRequest,
  ): Promise<GroupGrant | undefined> {
    const members = membersOf(this);
    const attempt = new RedlockAttempt(members, this.#masters, requests, request);
    try {
      return await members.engine.acquire(attempt, request.wait, request.signal);
    } catch (error) {
      const isUnanswered = error !== request.signal?.reason && isLockError(error, "UNAVAILABLE");
      throw (isUnanswered && nobodyAnswered(members)) || error;
    }
  }

  /** @internal */
  protected override async ask<T>(
    question: (member: Member) => Promise<T>,
    isDecided?: (results: readonly Settled<T>[]) => boolean,
  ): Promise<readonly Settled<T>[]> {
    membersOf(this).assertOpen();
    await this.#masters.connecting(SHORTEST_ANSWER_TIME);
    const introduced = this.#masters.introduce(SHORTEST_ANSWER_TIME);
    const results = await super.ask(question, isDecided);
    if (introduced) await introduced;
    this.#masters.assertDistinct();
    return results;
  }

  /** @internal */
  protected override inTime<T>({ env, lock }: Member, answer: Promise<T>): Promise<T> {
    return env.runner.withTimeout(lock.name, answer, answerTime(env, undefined));
  }

  /** @internal */
  protected override unanswered(results: readonly Settled<unknown>[]): unknown {
    const inFavour = fulfilled(results).filter((answer) => Number(answer) > 0);
    return tooFewAnswers(membersOf(this), results, inFavour.length);
  }
}
