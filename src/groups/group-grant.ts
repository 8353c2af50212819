/**
 * What one owner has of a group by one call: its seats, and one hold on all of them. It is held while a quorum of the seats
 * is; then the hold is lost, and the rest is given back.
 */
import type { Clock } from "../base/clock.js";
import { isLockError, LockLostError, type LossReason } from "../base/errors.js";
import { quietly } from "../base/work.js";
import type { Grant } from "../lock/grant.js";
import { type Held, HoldRecord, type Origin } from "../lock/hold-record.js";
import type { Frame } from "../owner/context.js";
import type { OwnerRecord } from "../owner/record.js";
import type { Member, Members } from "./members.js";
import type { Seat } from "./seat.js";
import { mostDone, withErrors } from "./votes.js";

/** The group that a count of a member belongs to. */
const groups = new WeakMap<HoldRecord, GroupGrant>();

/** The innermost hold of this group among the counts of a grant of a member. */
export function groupAmong({ holds }: Grant, lockKey: string): HoldRecord<GroupGrant> | undefined {
  for (const hold of [...holds].reverse()) {
    const group = groups.get(hold);
    if (group?.lockKey === lockKey && group.hold.isHeld) return group.hold;
  }
  return undefined;
}

export interface GroupGrantOptions {
  readonly members: Members;
  readonly owner: OwnerRecord;
  /** In the order of the members. */
  readonly seats: readonly Seat[];
  /** Seats whose servers have not answered yet. */
  readonly open: readonly Seat[];
  readonly frame: Frame | undefined;
  readonly renewed: boolean;
  /** Nobody else has its owner: only its `Hold` can give it back. */
  readonly isPrivate: boolean;
}

export class GroupGrant implements Held {
  readonly members: Members;
  readonly owner: OwnerRecord;
  /** `clientId:n` of the first member that has granted it, or may yet do so. */
  readonly ownerId: string;
  readonly hold: HoldRecord<GroupGrant>;
  #seats: readonly Seat[];
  readonly #open: Set<Seat>;
  /** Milliseconds of the last extend: seats that join are extended, too. */
  #term: number | undefined;
  readonly #isPrivate: boolean;
  #isTold = false;

  constructor({ members, owner, seats, open, frame, renewed, isPrivate }: GroupGrantOptions) {
    this.members = members;
    this.owner = owner;
    this.#seats = seats;
    this.#open = new Set(open);
    this.#isPrivate = isPrivate;
    // Where the owner's grants were found to be gone, what another member still has of them is not this hold's.
    const isAnew = seats.some(({ tried, isNesting }) => tried > 1 && !isNesting);
    const all = [...seats, ...open.filter(({ isNesting }) => !(isAnew && isNesting))];
    const first = members.all.map((member) => all.find((seat) => seat.member === member)).find(Boolean);
    this.ownerId = first?.seatId ?? "";
    const origin: Origin = frame ? "run" : "bare";
    this.hold = new HoldRecord<GroupGrant>(this, "only", origin, renewed, frame);
  }

  get lockName(): string {
    return this.members.name;
  }

  get lockKey(): string {
    return this.members.key;
  }

  get clock(): Clock {
    return this.members.clock;
  }

  get seats(): readonly Seat[] {
    return this.#seats;
  }

  get remaining(): number {
    return this.members.best(this.#seats.map(({ remaining }) => remaining));
  }

  check(): void {
    for (const { hold } of this.#seats) hold?.grant.check();
  }

  /** The call resolves with it. */
  tellGrant(waited: number): void {
    const own = this.#seats.map(({ hold }) => hold);
    const isNested = ({ kind: { lockKey, side } }: Member) => {
      const grant = this.owner.grantOf(lockKey) as Grant | undefined;
      return grant?.holds.some((hold) => hold.side === side && !own.includes(hold));
    };
    const nested = this.members.all.filter(isNested).length >= this.members.quorum;
    for (const seat of this.#seats) this.#seated(seat, waited);
    this.#isTold = true;
    this.members.tellGrant(this.hold, waited, nested);
    for (const seat of this.#open) {
      const answered = () => {
        if (this.#open.delete(seat) && seat.hold) this.#join(seat, waited);
      };
      void quietly(seat.answer).then(answered);
    }
  }

  async extend(lease: number): Promise<void> {
    this.#term = lease;
    const extended = this.#seats.map(async ({ hold }) => {
      hold?.assertUsable();
      await hold?.grant.extend(lease);
    });
    const error = await mostDone(this.members.quorum, extended);
    if (error !== undefined) throw this.hold.loss ?? error;
  }

  giveBack(hold: HoldRecord): Promise<void> {
    this.closed(hold);
    hold.end();
    this.#drop();
    return this.#release();
  }

  askAgain(): Promise<void> {
    return this.#release();
  }

  closed(hold: HoldRecord): void {
    this.owner.closed(hold);
  }

  #seated(seat: Seat, waited: number): void {
    const hold = seat.hold as HoldRecord<Grant>;
    seat.tell(waited);
    groups.set(hold, this);
    if (this.#isPrivate) hold.dropped = () => (this.#isGarbage ? this.hold : undefined);
    hold.whenEnded(() => this.#seatEnded(hold));
    if (hold.state !== "live") this.#seatEnded(hold);
  }

  /** Whether the user has dropped it, and what it had of its members. */
  get #isGarbage(): boolean {
    const records = this.#seats.flatMap(({ hold }) => (hold?.state === "live" ? [hold] : []));
    const isKept = (record: HoldRecord) => {
      const isGarbage = record.isGarbage;
      return record.isKept || (record.view !== undefined && !isGarbage);
    };
    // Each is looked at, for the first look makes it known weakly.
    return records.filter(isKept).length === 0 && this.hold.isGarbage;
  }

  /** A member has answered late. */
  #join(seat: Seat, waited: number): void {
    if (this.hold.state !== "live") return void seat.leave();
    const { all } = this.members;
    const at = ({ member }: Seat) => all.indexOf(member);
    this.#seats = [...this.#seats, seat].sort((a, b) => at(a) - at(b));
    this.#seated(seat, waited);
    if (this.#term !== undefined && seat.hold) void quietly(seat.hold.grant.extend(this.#term));
  }

  /** A member was lost, or was given back by an unlock of its own. */
  #seatEnded({ loss }: HoldRecord): void {
    if (this.hold.state !== "live") return;
    const left = this.#seats.filter(({ hold }) => hold?.state === "live");
    if (left.length >= this.members.quorum) return;
    this.#lose(loss?.reason ?? "forced");
    for (const seat of left.reverse()) void seat.leave();
  }

  #lose(reason: LossReason): void {
    const { heldFor: held } = this.hold;
    const losses = this.#seats.flatMap(({ hold }) => hold?.loss ?? []);
    const loss = withErrors(new LockLostError(this.lockName, reason, this.clock.wall()), losses);
    this.#drop();
    this.hold.lose(loss);
    this.members.emit("lost", { ownerId: this.ownerId, reason, held });
  }

  /** What is granted from now on is not wanted. */
  #drop(): void {
    for (const seat of this.#open) void seat.leave();
    this.#open.clear();
  }

  /** @throws the loss, or the first error, with all of them in `errors` */
  async #release(): Promise<void> {
    this.members.gather();
    const { order } = this.members;
    const at = ({ member }: Seat) => order.indexOf(member);
    const lastFirst = [...this.#seats].sort((a, b) => at(b) - at(a));
    const released = lastFirst.map(({ hold }) => (hold as HoldRecord).release());
    const error = await mostDone(this.members.quorum, released);
    if (error === undefined) return this.#tellRelease();
    if (isLockError(error, "LOCK_LOST")) {
      this.#lose((error as LockLostError).reason);
    } else if (isLockError(error, "UNAVAILABLE")) void quietly(this.#goOn(released));
    throw error;
  }

  /** The members' releases go on in the background. */
  async #goOn(released: readonly Promise<void>[]): Promise<void> {
    await Promise.allSettled(released);
    if (this.#isTold) await this.#release();
  }

  #tellRelease(): void {
    if (!this.#isTold) return;
    this.#isTold = false;
    this.members.tellRelease(this.hold);
  }
}
