/**
 * One call for a group, from the first line of `lock()` to its hold. Its limits, its promise and its end are those of
 * any call that may wait. It sends its seats, in each round one for each member. Their ends are the votes of the round.
 * Nothing is held while it waits: a lost round gives all seats back.
 */
import { follow } from "../lock/follow.js";
import type { HoldRecord } from "../lock/hold-record.js";
import type { Asked } from "../lock/options.js";
import { type OwnCall, OwnerRecord } from "../owner/owner.js";
import { Waiter } from "../waiting/waiter.js";
import { GroupGrant, multiViewOf } from "./group-grant.js";
import { isUnresponsive, type Members, withErrors } from "./members.js";
import type { Seat } from "./seat.js";

export abstract class GroupCall<M extends Members = Members>
  extends Waiter<M, HoldRecord<GroupGrant>>
  implements OwnCall
{
  declare readonly asked: Asked;
  /** All seats are one owner's, so that both sides of one lock know each other. */
  readonly owner: OwnerRecord;
  /** Of this round, in the order in which it asks. */
  seats: readonly Seat[] = [];
  #toldId: string | undefined;

  constructor(members: M, asked: Asked) {
    super(members, asked);
    this.owner = asked.owner ?? new OwnerRecord();
    // Whatever ends it, its seats are given back.
    this.unsure();
    // Of an owner that nobody else knows there are no other calls.
    asked.owner?.begin(this);
  }

  /** A seat is over: granted, refused, failed, or not wanted any more. */
  abstract voted(seat: Seat): void;

  /** The first member's, as events tell it from the first time on. */
  override get toldId(): string {
    this.#toldId ??= this.seats.find(({ at }) => at === 0)?.seatId ?? this.env.wireId();
    return this.#toldId;
  }

  protected override outcome(hold: HoldRecord<GroupGrant> | undefined): unknown {
    if (!hold) return null;
    const { seats, isNested: nested } = hold.grant;
    if (!this.asked.frame) this.owner.opened(hold);
    for (const seat of seats) seat.tell();
    this.wanted.emit("acquired", { waited: this.waited, nested }, hold.grant);
    follow(this.wanted, hold);
    return multiViewOf(hold);
  }

  override start(): Promise<unknown> {
    this.known();
    return super.start();
  }

  /** Gives the seats of this round back, the last first. Never rejects. */
  protected override undo(): Promise<unknown> {
    this.wanted.gather();
    const seats = [...this.seats].reverse();
    this.seats = [];
    return Promise.all(seats.map((seat) => seat.leave()));
  }

  /** It has its hold, made of the seats that are granted. */
  protected accept(): GroupGrant {
    const group = new GroupGrant(this);
    this.grant(group.hold);
    return group;
  }

  protected override ended(): void {
    this.owner.over(this);
  }

  /** Those of the members that do not answer. */
  protected override unavailable(): unknown {
    const silent = this.wanted.parts.filter(isUnresponsive);
    const errors = silent.map(({ env }) => env.runner.unavailable(this.lockName));
    return errors[0] ? withErrors(errors[0], errors) : super.unavailable();
  }

  // It sends nothing itself.

  protected override request(): never {
    throw new Error("a group has no command");
  }

  protected override answered(): void {
    this.request();
  }
}
