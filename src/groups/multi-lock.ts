/** Many locks as one: all of them or none. */
import { tellCaller } from "../base/errors.js";
import { LockFace } from "../lock/face.js";
import type { Lock } from "../lock/lock.js";
import { type Asked, namedOwner, type OwnerOptions } from "../lock/options.js";
import { AllCall } from "./all.js";
import type { GroupCall } from "./group-call.js";
import { groupAmong, type MultiHold, multiViewOf } from "./group-grant.js";
import { Members, type Question } from "./members.js";

/** Milliseconds of a lock that is free, as {@link Lock.remainTimeToLive} has it. */
const FREE = -2;

/**
 * Locks of any kind and any client, taken together: all or none. A call never waits while it holds a member, so calls
 * with other members or orders cannot dead-lock with it. A member that others want all the time may keep the call
 * waiting. The hold ends when the hold of any member does.
 * @example
 * const both = new MultiLock(client.getLock("account:1"), client.getLock("account:2"));
 * await both.run(() => sell("42"), { wait: 2_000 });
 */
export class MultiLock extends LockFace<MultiHold> {
  readonly #members: Members;

  /** @throws TypeError for no lock at all, for what is not a lock of a LockClient, and for the same lock twice */
  constructor(...locks: Lock[]) {
    const members = new.target.membersOf(locks);
    super(members);
    this.#members = members;
  }

  /** @internal */
  protected static membersOf(locks: readonly unknown[]): Members {
    return new Members(locks);
  }

  override currentHold(): MultiHold | null {
    const owner = this.currentOwner();
    for (const lockKey of this.#members.turnKeys) {
      const grant = owner?.grantOf(lockKey);
      const hold = grant && groupAmong(grant, this.#members.lockKey);
      hold?.keep();
      if (hold) return multiViewOf(hold);
    }
    return null;
  }

  /**
   * Gives all members back whoever holds them; resolves with whether anybody held any.
   * @throws as {@link Lock.forceUnlock}; of a RedLock QUORUM if too few masters answered
   */
  override async forceUnlock(): Promise<boolean> {
    this.#members.assertOpen();
    const { values } = await this.#members.ask((lock) => lock.forceUnlock());
    return values.includes(true);
  }

  /**
   * Whether somebody holds all members (of a RedLock: a majority).
   * @throws as {@link forceUnlock}; of a RedLock QUORUM, too, where masters that gave no answer could turn the result
   */
  override async isLocked(): Promise<boolean> {
    return (await this.#best(0, async (lock) => Number(await lock.isLocked()))) > 0;
  }

  /**
   * Whether the current owner holds all members (of a RedLock: a majority), by the word of Redis.
   * @throws as {@link isLocked}
   */
  override async isHeldByCurrentOwner(options?: OwnerOptions): Promise<boolean> {
    return (await this.#count(options, "isHeldByCurrentOwner")) > 0;
  }

  /**
   * The least of the members (of a RedLock: of the best majority), by the word of Redis. It is 0 without asking if the
   * current owner holds too few.
   * @throws as {@link isLocked}
   */
  override async getHoldCount(options?: OwnerOptions): Promise<number> {
    return this.#count(options, "getHoldCount");
  }

  /**
   * The least of the members (of a RedLock: of the best majority of those that answered), in milliseconds; -2 when free.
   * @throws as {@link forceUnlock}; of a RedLock QUORUM, too, where masters that gave no answer could make it held
   */
  override async remainTimeToLive(): Promise<number> {
    return this.#best(FREE, (lock) => lock.remainTimeToLive());
  }

  /** @internal */
  protected callOf(members: Members, asked: Asked): GroupCall {
    return new AllCall(members, asked);
  }

  /** @internal */
  protected override acquire(asked: Asked): Promise<MultiHold | null> {
    this.#members.assertOpen();
    return this.callOf(this.#members, asked).start() as Promise<MultiHold | null>;
  }

  /** `where`: the call whose options these are. */
  async #count(options: OwnerOptions | undefined, where: string): Promise<number> {
    const owner = namedOwner(options, where) ?? this.currentOwner();
    this.#members.assertOpen();
    if (!owner || !this.#members.areHeldBy(owner)) return 0;
    return this.#best(0, (lock) => lock.getHoldCount(options));
  }

  /** The group's answer to a question to which members that are free answer `none`. */
  async #best(none: number, question: Question<number>): Promise<number> {
    const members = this.#members;
    members.assertOpen();
    const given = await members.ask(question);
    const best = members.best(given.values);
    const free = given.values.filter((answer) => answer === none).length;
    // Members without an answer could turn this.
    const isOpen = best === none && free <= members.parts.length - members.quorum;
    return isOpen ? tellCaller(members.undecided(given)) : best;
  }
}
