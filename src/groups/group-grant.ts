/**
 * What one owner has of a group by one call: its seats, and one hold on all of them. It is held while a quorum of the seats
 * is; then the hold is lost, and the rest is given back.
 */
import type { Clock, Instant } from "../base/clock.js";
import { isLockError, type LockError, LockLostError, type LossReason } from "../base/errors.js";
import { microtask } from "../base/platform.js";
import { quietly } from "../base/work.js";
import type { Grant } from "../lock/grant.js";
import { Hold, recordOf, viewOf } from "../lock/hold.js";
import { type Held, HoldRecord } from "../lock/hold-record.js";
import type { OwnerRecord } from "../owner/owner.js";
import type { GroupCall } from "./group-call.js";
import type { MajorityCall } from "./majority.js";
import { type Members, outcomes, withErrors } from "./members.js";
import type { Seat } from "./seat.js";

/** The innermost hold of this group among the counts of a grant of a member. */
export function groupAmong({ holds }: Grant, lockKey: string): HoldRecord<GroupGrant> | undefined {
  const ofGroup = ({ group }: HoldRecord) => group?.lockKey === lockKey && group.isHeld;
  return [...holds].reverse().find(ofGroup)?.group as HoldRecord<GroupGrant> | undefined;
}

export class GroupGrant implements Held {
  readonly members: Members;
  readonly owner: OwnerRecord;
  readonly lockName: string;
  readonly lockKey: string;
  readonly clock: Clock;
  /**
   * That of the hold that it nests into, or of the first member if that hold is gone already. Where it is not nested, that of
   * the first member that has granted it.
   */
  readonly wireId: string;
  readonly hold: HoldRecord<GroupGrant>;
  /** Those that are granted, or may yet be, in the one order of all groups. */
  readonly seats: readonly Seat[];
  declare controller?: AbortController;
  /** Its owner had enough of the members before. */
  readonly isNested: boolean;
  /** Nobody else has its owner: only its `Hold` can give it back. */
  readonly #isPrivate: boolean;
  /** Milliseconds of the last extend: seats that join are extended, too. */
  #term: number | undefined;

  constructor({ wanted: members, owner, asked, seats }: GroupCall) {
    this.members = members;
    this.owner = owner;
    this.lockName = members.lockName;
    this.lockKey = members.lockKey;
    this.clock = members.env.clock;
    this.seats = seats.filter(({ hold, state }) => hold || state !== "over");
    this.#isPrivate = asked.owner === undefined;
    const granted = this.seats.filter(({ hold }) => hold);
    this.isNested = granted.filter(({ isNested }) => isNested).length >= members.quorum;
    const [outer] = granted.flatMap(({ hold }) => (hold && groupAmong(hold.grant, this.lockKey)) ?? []);
    const own = this.isNested ? this.seats : granted;
    this.wireId = outer?.grant.wireId ?? own.reduce((a, b) => (a.at < b.at ? a : b)).seatId;
    this.hold = new HoldRecord<GroupGrant>(this, "only", asked);
    for (const seat of granted) this.#add(seat);
  }

  get remaining(): number {
    return this.members.best(this.#live.map(({ hold }) => hold?.grant.remaining ?? 0));
  }

  /** The user's objects for what it has of its members, in the order in which those were given. */
  get views(): Hold[] {
    const seats = [...this.seats].sort((a, b) => a.at - b.at);
    return seats.flatMap(({ hold }) => (hold ? viewOf(hold) : []));
  }

  get isGarbage(): boolean {
    // Each is looked at, for the first look makes it known weakly.
    const kept = this.#live.filter(({ hold }) => !hold?.isGarbage);
    return this.#isPrivate && kept.length === 0 && this.hold.isGarbage;
  }

  check(now?: Instant): void {
    for (const { hold } of this.seats) hold?.grant.check(now);
  }

  /** One more member has granted its seat. */
  join(seat: Seat): void {
    if (!seat.hold) return;
    this.#add(seat);
    seat.tell();
    if (this.#term !== undefined) void quietly(seat.hold.grant.extend(this.#term));
  }

  async extend(lease: number): Promise<void> {
    this.#term = lease;
    const extended = this.#holds.map(async (hold) => {
      hold.assertUsable();
      await hold.grant.extend(lease);
    });
    const error = await this.#most(extended);
    if (error !== undefined) throw this.hold.loss ?? error;
  }

  giveBack(hold: HoldRecord): Promise<void> {
    this.#drop();
    this.#handOver();
    return this.#release().catch((error: unknown) => hold.unreleased(error));
  }

  askAgain(): Promise<void> {
    return this.#release();
  }

  #add({ hold }: Seat): void {
    if (!hold) return;
    hold.group = this.hold;
    hold.whenEnded(() => this.#seatEnded(hold));
  }

  /** A member was lost, or was given back by an unlock of its own. */
  #seatEnded({ loss }: HoldRecord): void {
    if (this.hold.state !== "live" || this.#live.length >= this.members.quorum) return;
    this.#lose(loss?.reason ?? "forced", loss?.since);
    // A client that is closed loses the other members as well, in this tick.
    microtask(() => {
      for (const seat of this.#live.reverse()) void seat.leave();
    });
  }

  get #holds(): HoldRecord<Grant>[] {
    return this.seats.flatMap(({ hold }) => hold ?? []);
  }

  get #live(): Seat[] {
    return this.seats.filter(({ hold }) => hold?.state === "live");
  }

  #lose(reason: LossReason, since: number = this.clock.wall()): void {
    const losses = this.#holds.flatMap(({ loss }) => loss ?? []);
    const held = Math.max(0, since - this.hold.acquiredAt);
    this.#drop();
    this.hold.lose(withErrors(new LockLostError(this.lockName, reason, since), losses));
    this.members.emit("lost", { reason, held }, this);
  }

  /** What is granted from now on is not wanted. */
  #drop(): void {
    for (const seat of this.seats) if (seat.state !== "over") void seat.leave();
  }

  /** What it gives back goes to the call that waits first here for the same group, if any. */
  #handOver(): void {
    // Only calls for a majority stand in a line of their group.
    const next = this.members.env.sites.get(this.members)?.first as MajorityCall | undefined;
    const holds = this.#live.flatMap(({ hold }) => hold ?? []);
    if (next && holds.every(({ grant }) => grant.mayPass && grant.reads + grant.writes === 1))
      next.succeed(holds);
  }

  /** @throws the loss, or the first error, with all of them in `errors` */
  async #release(): Promise<void> {
    const { members, hold } = this;
    members.gather();
    const released = this.#holds.reverse().map((each) => each.release());
    const error = await this.#most(released);
    if (error !== undefined) {
      if (isLockError(error, "LOCK_LOST")) this.#lose(error.reason, error.since);
      // The members' releases go on in the background.
      if (isLockError(error, "UNAVAILABLE")) void quietly(this.#release());
      throw error;
    }
    if (!hold.isTold) return;
    hold.isTold = false;
    members.emit("released", { held: this.clock.wall() - hold.acquiredAt }, this);
  }

  /** Waits until a quorum of members has done its work. Resolves with the error of work that too few have done. */
  async #most(work: readonly Promise<void>[]): Promise<unknown> {
    const { quorum } = this.members;
    const { values, errors } = await outcomes(work, quorum);
    if (values.length >= quorum) return undefined;
    const isLoss = (error: unknown) => isLockError(error, "LOCK_LOST");
    // With a quorum not lost, the lost ones are not why the work failed.
    const isLost = work.length - errors.filter(isLoss).length < quorum;
    const first = errors.find((error) => isLockError(error) && isLoss(error) === isLost);
    return first ? withErrors(first as LockError, errors) : errors[0];
  }
}

/**
 * A hold on a MultiLock or RedLock: lost when one of its members is, or too many for a majority.
 * @example
 * const hold = await new MultiLock(client.getLock("account:1"), client.getLock("account:2")).lock();
 * await hold.unlock();
 */
export class MultiHold extends Hold {
  /**
   * The members' holds, in the order of the members. A RedLock's hold begins with a majority of them; members that
   * grant it later join while it is held. If you give back a member by itself, the group's hold ends once fewer than
   * all (of a RedLock: than a majority) are left. It is lost, `forced`, and the rest is given back.
   */
  get members(): Hold[] {
    return (recordOf(this).grant as GroupGrant).views;
  }
}

/** What the user gets for a hold of a group: one object, as long as somebody keeps it. */
export function multiViewOf(record: HoldRecord<GroupGrant>): MultiHold {
  record.view ??= new MultiHold(record);
  return record.view as MultiHold;
}
