/**
 * A seat: one member of a group in one call. It is a call for that lock like any other: it becomes the owner's grant of the
 * lock, or one count of it. Its owner sees it as such, so the owner's other calls re-enter it, and what a lost round gives
 * back is that count. Its end is a vote of the round; events tell of it once the group has a hold.
 */
import { isLockError, UnsupportedServerError } from "../base/errors.js";
import { quietly } from "../base/work.js";
import type { Kind } from "../kinds/kind.js";
import { Call } from "../lock/call.js";
import type { Grant } from "../lock/grant.js";
import type { HoldRecord } from "../lock/hold-record.js";
import type { GroupCall } from "./group-call.js";

/** Why a seat ends whose group does not want it any more; nobody hears it. */
const NOT_WANTED: unique symbol = Symbol("not wanted");

export class Seat extends Call {
  /** Its count, once it is granted. */
  hold: HoldRecord<Grant> | undefined;
  /** Why it has failed. */
  error: unknown;
  /** Milliseconds until the lease of its member's holder ends, as far as that is known. */
  freeIn: number = Number.POSITIVE_INFINITY;
  readonly #of: GroupCall;

  /** `waits`: it stands in the member's line if it is refused. The call for the group bounds how long. */
  constructor(of: GroupCall, member: Kind, waits = false) {
    const wait = waits ? Number.POSITIVE_INFINITY : 0;
    const { lease, frame, caller, begun } = of.asked;
    super(member, { wait, lease, signal: undefined, owner: of.owner, frame, caller, begun });
    this.#of = of;
    this.hasWaited = waits && of.hasWaited;
  }

  /** The place of its member among those that were given. */
  get at(): number {
    return this.#of.wanted.given.indexOf(this.wanted);
  }

  /** How its member votes: a grant may have come after its deadline. Undefined without an answer. */
  get vote(): boolean | undefined {
    if (this.hold || isLockError(this.error, "LOCK_LOST")) return true;
    return this.state === "over" && this.error === undefined ? false : undefined;
  }

  /** The wire id under which the member knows it. */
  get seatId(): string {
    return this.hold?.grant.wireId ?? this.toldId;
  }

  /** It has re-entered a grant that its owner had. */
  get isNested(): boolean {
    return this.hold !== undefined && this.hold.grant.wireId !== this.wireId;
  }

  /** Its member has had its time for an answer, whatever the seat waits for. */
  giveUp(): void {
    if (this.isOpen) this.expire();
    else this.end(this.env.runner.unavailable(this.lockName));
  }

  /** The group does not want it: its count is given back. Resolves when that has been answered; never rejects. */
  leave(): Promise<void> | undefined {
    const { hold, asked } = this;
    if (!hold) return void this.end(NOT_WANTED);
    const released = quietly(hold.release());
    if (asked.frame) this.owner?.endRun(this.lockKey, asked.frame);
    return released;
  }

  /** It is a part of what the group has: from now on events tell of it. */
  tell(): void {
    const { hold, wanted, isNested: nested, waited } = this;
    if (hold?.state !== "live") return;
    hold.isTold = true;
    wanted.emit("acquired", { waited, nested }, hold.grant);
  }

  /** The group waits. */
  override announce(): void {
    this.hasWaited = true;
    this.#of.announce();
  }

  /** Nobody awaits it, and events tell of its hold later. */
  protected override outcome(): undefined {
    return undefined;
  }

  protected override grant(hold: HoldRecord<Grant>): void {
    this.hold = hold;
    hold.isTold = false;
    super.grant(hold);
    this.#of.voted(this);
  }

  protected override refuse(ttl: number): void {
    if (ttl >= 0) this.freeIn = ttl;
    super.refuse(ttl);
  }

  protected override tellEnd(error: unknown): void {
    this.error = error;
    this.#of.voted(this);
  }

  /** A hold is often given back before the last master has answered: the END that is on its way then ends that grant. */
  protected override late(reply: unknown, wireId: string): void {
    if (!super.isOwn(wireId)) super.late(reply, wireId);
  }

  /** @throws UNSUPPORTED if another seat of the call refuses it: both members are one lock, by two clients */
  protected override isOwn(holder: string): boolean {
    const other = this.#of.seats.find((seat) => seat.lockKey !== this.lockKey && seat.seatId === holder);
    if (!other) return super.isOwn(holder);
    const names = [other, this].map(({ lockName }) => `"${lockName}"`).join(" and ");
    const what = `the members ${names} are one lock, by two clients of one server`;
    throw new UnsupportedServerError(this.#of.lockName, what, undefined, "name each lock once");
  }
}
