/** Many locks as one: all of them or none. */
import { tellCaller } from "../base/caller.js";
import type { LockCallContext } from "../base/channels.js";
import type { LockKind } from "../base/events.js";
import {
  type LockRequest,
  namedOwner,
  type OwnedRequest,
  type OwnerOptions,
  owned,
  ownerOf,
} from "../locks/acquisition-options.js";
import type { Env } from "../locks/env.js";
import { force } from "../locks/force.js";
import type { Lock } from "../locks/lock.js";
import { LockFace } from "../locks/lock-face.js";
import { wireIdOf } from "../locks/loss.js";
import { knownLockOf } from "../locks/owner-lock.js";
import { ambientOwner, type Frame, type OwnerRecord } from "../owners/context.js";
import { AllOrNone } from "./all-or-none.js";
import type { GroupGrant } from "./group-grant.js";
import { GroupRecord } from "./group-record.js";
import {
  endRuns,
  isUnowned,
  type MemberRequest,
  openFrames,
  requestsOf,
  tellEnd,
} from "./member-requests.js";
import { checkMembers, isUnresponsive, type Member, Members } from "./members.js";
import { MultiHold, multiHoldOf } from "./multi-hold.js";
import { answerOf, fulfilled, rejected, type Settled, settled } from "./settled.js";

/** Milliseconds of a lock that is free, as {@link Lock.remainTimeToLive} has it. */
const FREE = -2;

/** For the subclass. No public field: a printed lock must not show its clients, and with them the connection's password. */
export let membersOf: (lock: MultiLock) => Members;

/**
 * Locks of any kind and any client, taken together: all or none. A call never waits while it holds a member, so calls with
 * other members or orders cannot dead-lock with it; a member that others want all the time may keep the call waiting. The
 * hold ends when the hold of any member does.
 * @example
 * const both = new MultiLock(client.getLock("account:1"), client.getLock("account:2"));
 * await both.run(() => sell("42"), { wait: 2_000 });
 */
export class MultiLock extends LockFace<MultiHold> {
  /** @internal */
  protected static readonly kind: LockKind = "multi";
  readonly #members: Members;

  static {
    membersOf = (lock) => lock.#members;
  }

  /** @throws TypeError for no lock at all, for what is not a lock of a LockClient, and for the same lock twice */
  constructor(...locks: Lock[]) {
    const list = checkMembers(locks);
    const members = new Members(new.target.kind, list, new.target.quorumOf(list.length));
    super(members.name, members.key, members.clock, members.bareCalls, members.traces, members);
    this.#members = members;
  }

  /** How many of `members` make a hold. @internal */
  protected static quorumOf(members: number): number {
    return members;
  }

  override currentHold(): MultiHold | null {
    const { key } = this.#members;
    const owner = ambientOwner(key);
    const group = owner && GroupRecord.of(owner, key)?.innermost;
    return group ? multiHoldOf(group as GroupGrant) : null;
  }

  /**
   * Gives all members back whoever holds them; resolves with whether anybody held any.
   * @throws as {@link Lock.forceUnlock}; of a RedLock QUORUM if too few masters answered
   */
  override async forceUnlock(): Promise<boolean> {
    const forced = await this.ask(({ table, backend }) => force(table, backend));
    // The holders' own masters may be away: knowing has a time of its own.
    const known = async (i: number) => answerOf(forced[i])?.told;
    await Promise.allSettled(this.#members.all.map((member, i) => this.inTime(member, known(i))));
    return fulfilled(forced).some(({ wasHeld }) => wasHeld);
  }

  /**
   * Whether somebody holds all members (of a RedLock: a majority).
   * @throws as {@link forceUnlock}; of a RedLock QUORUM, too, where masters that gave no answer could turn the result
   */
  override async isLocked(): Promise<boolean> {
    return (await this.#best(0, async ({ lock }) => Number(await lock.isLocked()), differ)) > 0;
  }

  /**
   * Whether the current owner holds all members (of a RedLock: a majority), by the word of Redis.
   * @throws as {@link isLocked}
   */
  override async isHeldByCurrentOwner(options?: OwnerOptions): Promise<boolean> {
    return (await this.#count(options, "isHeldByCurrentOwner", (count) => Math.min(count, 1))) > 0;
  }

  /**
   * The least of the members (of a RedLock: of the best majority), by the word of Redis; 0 without asking if the current
   * owner holds too few.
   * @throws as {@link isLocked}
   */
  override async getHoldCount(options?: OwnerOptions): Promise<number> {
    return this.#count(options, "getHoldCount", (count) => count);
  }

  /**
   * The least of the members (of a RedLock: of the best majority of those that answered), in milliseconds; -2 when free.
   * @throws as {@link forceUnlock}; of a RedLock QUORUM, too, where masters that gave no answer could make it held
   */
  override async remainTimeToLive(): Promise<number> {
    const isOpen = (least: number, most: number) => least === FREE && most !== FREE;
    return this.#best(FREE, ({ lock }) => lock.remainTimeToLive(), isOpen);
  }

  /** Takes the members; undefined if `request.wait` was not enough. @internal */
  protected collect(
    requests: readonly MemberRequest[],
    request: LockRequest,
  ): Promise<GroupGrant | undefined> {
    return new AllOrNone(this.#members, requests, request).collect();
  }

  /** Bounds the time for one member's answer to a question. @internal */
  protected inTime<T>(_member: Member, answer: Promise<T>): Promise<T> {
    return answer;
  }

  /** The error for too few answers. @internal */
  protected unanswered(results: readonly Settled<unknown>[]): unknown {
    return rejected(results)[0];
  }

  /** @internal */
  protected override holder(): Promise<string | undefined> {
    return this.#members.holder();
  }

  /** @internal */
  protected override about(): LockCallContext {
    const { envs, kind } = this.#members;
    return { clientId: (envs[0] as Env).clientId, lockName: this.name, kind };
  }

  /** @internal */
  protected override async acquire(request: LockRequest): Promise<MultiHold | undefined> {
    if (request.signal?.aborted) throw request.signal.reason;
    const members = this.#members;
    members.assertOpen();
    const asked = isUnowned(members, request) ? request : owned(request);
    const requests = requestsOf(members, asked);
    const group = await this.collect(requests, asked).catch((error: unknown) => {
      tellEnd(members, requests, asked, error);
      return tellCaller(error);
    });
    if (!group) return void tellEnd(members, requests, asked);
    group.isBare = !request.frame;
    if (asked.owner) GroupRecord.push(asked.owner, members.key, group);
    group.announce(request.begun, request.callSite);
    const hold = new MultiHold(group);
    // A bare call's hold is watched for being dropped by its caller, so nothing here may refer to it.
    if (request.owner) group.view = hold;
    return this.handOut(hold, request);
  }

  /** @internal */
  protected override openFrame(request: OwnedRequest, scope: Frame | undefined): Frame {
    return openFrames(this.#members, request, scope);
  }

  /** @internal */
  protected override endRun(frame: Frame): void {
    endRuns(this.#members, frame);
  }

  /** @internal */
  protected override releaseInnermost(owner: OwnerRecord): Promise<void> | undefined {
    return GroupRecord.of(owner, this.#members.key)?.release();
  }

  /** A group keeps no list of bare holds: each owner's record has its own. @internal */
  protected override hasBareHold(): boolean {
    return false;
  }

  /** @internal */
  protected override report(cause: unknown, ownerId: string): void {
    this.#members.emit("error", { ownerId, cause });
  }

  /** Asks all members. Once a quorum has answered and `isDecided`, silent members are not waited for. @internal */
  protected async ask<T>(
    question: (member: Member) => Promise<T>,
    isDecided: (results: readonly Settled<T>[]) => boolean = () => true,
  ): Promise<readonly Settled<T>[]> {
    const { all: members, quorum } = this.#members;
    this.#members.assertOpen();
    const asked = members.map((member) => this.inTime(member, question(member)));
    const results = await settled(asked, (so) => {
      const open = members.filter((_, i) => !so[i]);
      const enough = fulfilled(so).length >= quorum && open.every(isUnresponsive);
      return enough && isDecided(so);
    });
    if (fulfilled(results).length < quorum || !isDecided(results)) tellCaller(this.unanswered(results));
    return results;
  }

  /** `where`: the name of the call that got the options. */
  async #count(
    options: OwnerOptions | undefined,
    where: string,
    read: (count: number) => number,
  ): Promise<number> {
    const named = namedOwner(options, where);
    const members = this.#members;
    members.assertOpen();
    const held = members.all.filter(({ key }) => wireIdOf(knownLockOf(ownerOf(named, key), key)));
    if (held.length < members.quorum) return 0;
    return this.#best(0, async ({ lock }) => read(await lock.getHoldCount(options)), differ);
  }

  /**
   * The group's answer to a question whose least answer is `none`. Members without an answer could make it anything from
   * `least` to `most`; `isOpen`: whether that leaves the question undecided.
   */
  async #best(
    none: number,
    question: (member: Member) => Promise<number>,
    isOpen: (least: number, most: number) => boolean,
  ): Promise<number> {
    const members = this.#members;
    const best = (so: readonly Settled<number>[], otherwise: number) =>
      members.best(members.all.map((_, i) => answerOf(so[i]) ?? otherwise));
    const isDecided = (so: readonly Settled<number>[]) =>
      !isOpen(best(so, none), best(so, Number.POSITIVE_INFINITY));
    return best(await this.ask(question, isDecided), none);
  }
}

function differ(least: number, most: number): boolean {
  return least !== most;
}
