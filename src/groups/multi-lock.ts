/** Many locks as one: all of them or none. */
import { tellCaller } from "../base/caller.js";
import type { LockCallContext } from "../base/channels.js";
import type { LockKind } from "../base/events.js";
import type { Side } from "../kinds/kind.js";
import { type Asked, LockFace } from "../lock/face.js";
import type { Grant } from "../lock/grant.js";
import type { HoldRecord } from "../lock/hold-record.js";
import type { Lock } from "../lock/lock.js";
import { namedOwner, type OwnerOptions } from "../lock/options.js";
import { type Frame, openFrame } from "../owner/context.js";
import type { OwnerRecord } from "../owner/record.js";
import { AllCall } from "./all.js";
import type { GroupCall } from "./group-call.js";
import { groupAmong } from "./group-grant.js";
import { isUnresponsive, type Member, Members } from "./members.js";
import { MultiHold } from "./multi-hold.js";
import { chosen, fulfilled, rejected, type Vote, votes } from "./votes.js";

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
    const members = new Members(new.target.kind, locks, new.target.quorumOf(locks.length));
    super(members.name, members.key, members.first.env);
    this.#members = members;
  }

  /** How many of `members` make a hold. @internal */
  protected static quorumOf(members: number): number {
    return members;
  }

  override currentHold(): MultiHold | null {
    const owner = this.currentOwner();
    for (const { kind } of this.#members.all) {
      const grant = owner?.grantOf(kind.lockKey) as Grant | undefined;
      const hold = grant?.isHeld ? groupAmong(grant, this.#members.key) : undefined;
      if (hold) return hold.viewOr(() => new MultiHold(hold));
    }
    return null;
  }

  /**
   * Gives all members back whoever holds them; resolves with whether anybody held any.
   * @throws as {@link Lock.forceUnlock}; of a RedLock QUORUM if too few masters answered
   */
  override async forceUnlock(): Promise<boolean> {
    return fulfilled(await this.ask(({ lock }) => lock.forceUnlock())).includes(true);
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

  /** A call for the members; `frames`: of a run, that of each member. @internal */
  protected callOf(asked: Asked, frames: ReadonlyMap<Member, Frame>): GroupCall {
    return new AllCall(this.#members, asked, frames);
  }

  /** Bounds the time for one member's answer to a question. @internal */
  protected inTime<T>(_member: Member, answer: Promise<T>): Promise<T> {
    return answer;
  }

  /** The error for too few answers. @internal */
  protected unanswered(so: readonly Vote[]): unknown {
    return rejected(so)[0];
  }

  /** @internal */
  protected override holder(): Promise<string | undefined> {
    return this.#members.holder();
  }

  /** @internal */
  protected override about(): LockCallContext {
    const { first, kind } = this.#members;
    return { clientId: first.env.clientId, lockName: this.name, kind };
  }

  /** @internal */
  protected override async acquire(asked: Asked): Promise<HoldRecord | undefined> {
    this.#members.assertOpen();
    const frames = asked.frame ? this.#framesOf(asked.frame) : new Map<Member, Frame>();
    return this.callOf(asked, frames).start(asked.soon);
  }

  /** @internal */
  protected override viewOf(hold: HoldRecord): MultiHold {
    const view = new MultiHold(hold);
    hold.view = view;
    return view;
  }

  /** @internal */
  protected override isOn({ lockKey }: { readonly lockKey: string; readonly side: Side }): boolean {
    return lockKey === this.#members.key;
  }

  /** @internal */
  protected override isMember(lockKey: string): boolean {
    return super.isMember(lockKey) || this.#members.all.some(({ kind }) => kind.lockKey === lockKey);
  }

  /** A run of the group is a run of each member, nested in their order. @internal */
  protected override openFrames(owner: OwnerRecord, outer: Frame | undefined): Frame {
    let frame = outer;
    for (const { kind } of this.#members.order) frame = openFrame(owner, kind.lockKey, frame);
    return super.openFrames(owner, frame);
  }

  /** @internal */
  protected override endRuns(owner: OwnerRecord, frame: Frame): void {
    for (const [{ kind }, each] of this.#framesOf(frame)) owner.endRun(kind.lockKey, each);
  }

  /** @internal */
  protected override hasBareHold(): boolean {
    const grants = this.#members.first.env.live.all();
    return grants.some((grant) => groupAmong(grant, this.#members.key)?.origin === "bare");
  }

  /** @internal */
  protected override report(cause: unknown, ownerId: string): void {
    this.#members.emit("error", { ownerId, cause });
  }

  /** Asks all members. Once a quorum has answered and `isDecided`, silent members are not waited for. @internal */
  protected async ask<T>(
    question: (member: Member) => Promise<T>,
    isDecided: (so: readonly Vote<T>[]) => boolean = () => true,
  ): Promise<readonly Vote<T>[]> {
    const { all: members, quorum } = this.#members;
    this.#members.assertOpen();
    const asked = members.map((member) => this.inTime(member, question(member)));
    const results = await votes(asked, (so) => {
      const open = members.filter((_, i) => !so[i]);
      return fulfilled(so).length >= quorum && open.every(isUnresponsive) && isDecided(so);
    });
    if (fulfilled(results).length < quorum || !isDecided(results)) tellCaller(this.unanswered(results));
    return results;
  }

  /** The frame of each member in a run whose innermost frame is `frame`. */
  #framesOf(frame: Frame): Map<Member, Frame> {
    const frames = new Map<Member, Frame>();
    let each = frame.parent;
    for (const member of [...this.#members.order].reverse()) {
      if (each) frames.set(member, each);
      each = each?.parent;
    }
    return frames;
  }

  /** `where`: the name of the call that got the options. */
  async #count(
    options: OwnerOptions | undefined,
    where: string,
    read: (n: number) => number,
  ): Promise<number> {
    const owner = namedOwner(options, where) ?? this.currentOwner();
    const members = this.#members;
    members.assertOpen();
    const held = members.all.filter(
      ({ kind }) => (owner?.grantOf(kind.lockKey) as Grant | undefined)?.isHeld,
    );
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
    const best = (so: readonly Vote<number>[], otherwise: number) =>
      members.best(members.all.map((_, i) => chosen(so[i]) ?? otherwise));
    const isDecided = (so: readonly Vote<number>[]) =>
      !isOpen(best(so, none), best(so, Number.POSITIVE_INFINITY));
    return best(await this.ask(question, isDecided), none);
  }
}

function differ(least: number, most: number): boolean {
  return least !== most;
}
