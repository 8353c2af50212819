/**
 * A seat: one member of a group in one call. It is a call for that lock like any other: it becomes the owner's grant of the
 * lock, or one count of it. Its owner sees it as such, so the owner's other calls re-enter it, and what a lost round gives
 * back is that count. Events tell of it once the group has a hold.
 */
import type { CallSite } from "../base/call-site.js";
import { UnsupportedServerError } from "../base/errors.js";
import { quietly } from "../base/work.js";
import { Call } from "../lock/call.js";
import type { Grant } from "../lock/grant.js";
import { type Hold, makeHold } from "../lock/hold.js";
import type { HoldRecord } from "../lock/hold-record.js";
import type { Frame } from "../owner/context.js";
import type { OwnerRecord } from "../owner/record.js";
import type { Member } from "./members.js";
import { owes } from "./patience.js";

/** Why a seat ends whose group does not want it any more; nobody hears it. */
const NOT_WANTED: unique symbol = Symbol("not wanted");

/** The call for the group, as its seats see it. */
interface Whole {
  readonly lockName: string;
  readonly owner: OwnerRecord;
  /** Milliseconds; undefined for a hold that the watchdog renews. */
  readonly term: number | undefined;
  readonly caller: Frame | undefined;
  readonly callSite: CallSite | undefined;
  readonly hasWaited: boolean;
  readonly seats: readonly Seat[];
  announce(): void;
}

export interface SeatOptions {
  readonly member: Member;
  /** The call for the group. */
  readonly of: Whole;
  readonly frame: Frame | undefined;
  /** It stands in the member's line if it is refused. */
  readonly waits: boolean;
  /** Milliseconds that its server has for the answer; default as any call. */
  readonly limit?: number;
}

export class Seat extends Call {
  readonly member: Member;
  /** Its count, once it is granted. */
  hold: HoldRecord<Grant> | undefined;
  /** The owner had a hold on this side before. */
  isNested = false;
  /** How often it was tried. */
  tried = 0;
  /** When refused: ms until the holder's lease ends, -1 if it has no end. */
  ttl = -1;
  readonly #of: Whole;
  readonly #limit: number | undefined;
  #withdrawn: Promise<void> | undefined;
  /** Settles with the answer of the member. */
  answer: Promise<HoldRecord<Grant> | undefined> = Promise.resolve(undefined);

  constructor({ member, of, frame, waits, limit }: SeatOptions) {
    const { owner, term: lease, caller, callSite } = of;
    const wait = waits ? Number.POSITIVE_INFINITY : 0;
    const begun = member.env.clock.mono();
    const asked = {
      owner,
      origin: "member",
      lease,
      frame,
      caller,
      callSite,
      wait,
      signal: undefined,
      begun,
    } as const;
    super(member.kind, asked);
    this.member = member;
    this.#of = of;
    this.#limit = limit;
    this.hasWaited = waits && of.hasWaited;
  }

  /** The wire id under which the member knows it. */
  get seatId(): string {
    return this.hold?.grant.wireId ?? this.toldId;
  }

  /** It re-enters, or has re-entered, a grant that its owner had. */
  get isNesting(): boolean {
    return this.seatId !== this.wireId;
  }

  /** Its deadline is known and has not passed. */
  get remaining(): number {
    return this.hold?.isHeld ? this.hold.grant.remaining : 0;
  }

  override start(): Promise<HoldRecord<Grant> | undefined> {
    const seated = super.start();
    const limit = this.#limit;
    // Its command has a time-out of its own; this one is for all else that it may wait for.
    if (limit !== undefined && this.state !== "over") {
      const tooLong = () => this.isOpen || this.fail(this.env.runner.unavailable(this.lockName));
      this.stopLater(this.env.clock.after(limit, tooLong));
    }
    this.answer = seated;
    return seated;
  }

  /** The group does not want it: its count is given back. Resolves when that is done. */
  leave(): Promise<void> {
    const { hold, frame } = this;
    if (!hold) {
      const isOpen = this.state !== "over";
      this.end(NOT_WANTED);
      const withdrawn = this.#withdrawn ?? Promise.resolve();
      if (isOpen) owes(this.member, withdrawn);
      return withdrawn;
    }
    const released = quietly(hold.release());
    if (frame) this.owner?.endRun(this.lockKey, frame);
    return released;
  }

  /** From now on events tell of it. */
  tell(waited: number): void {
    const { hold, env, kind } = this;
    if (!hold || hold.isTold) return;
    hold.isTold = true;
    env.events.tellGrant(kind.about, hold, waited, this.isNested);
  }

  /** The user's object for its count. */
  get view(): Hold {
    const hold = this.hold as HoldRecord<Grant>;
    const known = hold.view instanceof WeakRef ? hold.view.deref() : hold.view;
    const view = known ?? makeHold(hold, hold.grant.token);
    hold.view = view;
    return view as Hold;
  }

  /** The group waits. */
  override announce(): void {
    this.#of.announce();
  }

  protected override get within(): number {
    return this.#limit ?? super.within;
  }

  protected override grant(hold: HoldRecord<Grant>): void {
    this.hold = hold;
    super.grant(hold);
  }

  protected override refuse(ttl: number): void {
    this.ttl = ttl;
    super.refuse(ttl);
  }

  protected override tries(): void {
    this.tried++;
    super.tries();
  }

  protected override tellGranted(hold: HoldRecord<Grant>): void {
    hold.isTold = false;
    this.isNested = hold.grant.holds.some((other) => other !== hold && other.side === hold.side);
  }

  protected override tellEnd(): void {
    // The group tells how it ends.
  }

  protected override withdraw(): Promise<void> | undefined {
    const withdrawn = super.withdraw();
    if (withdrawn) this.#withdrawn = withdrawn;
    return withdrawn;
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
