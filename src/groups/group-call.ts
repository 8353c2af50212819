/**
 * One call for a group, from the first line of `lock()` to its hold. Its limits, its promise and its end are those of any
 * call that may wait; what it sends are its seats. Nothing is held while it waits: a lost round gives all seats back.
 */
import type { CallSite } from "../base/call-site.js";
import type { LockEvent } from "../base/events.js";
import { trace } from "../base/trace.js";
import type { Kind, Traits } from "../kinds/kind.js";
import type { Asked } from "../lock/face.js";
import type { HoldRecord } from "../lock/hold-record.js";
import { type Frame, ownersAround } from "../owner/context.js";
import { type OwnCall, OwnerRecord } from "../owner/record.js";
import { Waiter } from "../waiting/waiter.js";
import type { GroupGrant } from "./group-grant.js";
import type { Member, Members } from "./members.js";
import { Seat } from "./seat.js";

const TRAITS: Traits = {};

export abstract class GroupCall extends Waiter<HoldRecord<GroupGrant>> implements OwnCall {
  readonly members: Members;
  readonly owner: OwnerRecord;
  /** Milliseconds; undefined for a hold that the watchdog renews. */
  readonly term: number | undefined;
  readonly frame: Frame | undefined;
  readonly caller: Frame | undefined;
  readonly callSite: CallSite | undefined;
  /** Its owner is known to nobody else. */
  readonly isPrivate: boolean;
  /** Of this round. */
  readonly seats: Seat[] = [];
  readonly #frames: ReadonlyMap<Member, Frame>;
  #toldId: string | undefined;

  /** `frames`: of a run, that of each member. */
  constructor(members: Members, asked: Asked, frames: ReadonlyMap<Member, Frame>) {
    super(members.first.env, asked);
    const { owner, lease, frame, caller, callSite } = asked;
    this.members = members;
    // All seats are one owner's, so that both sides of one lock know each other.
    this.owner = owner ?? new OwnerRecord();
    this.isPrivate = owner === undefined;
    this.term = lease;
    this.frame = frame;
    this.caller = caller;
    this.callSite = callSite;
    this.#frames = frames;
    this.owner.begin(this);
  }

  get lockName(): string {
    return this.members.name;
  }

  get lockKey(): string {
    return this.members.key;
  }

  get siteName(): string {
    return this.members.key;
  }

  get key(): string {
    return this.members.first.kind.key;
  }

  get channel(): string {
    return this.members.key;
  }

  get traits(): Traits {
    return TRAITS;
  }

  get about(): LockEvent {
    return this.members.about;
  }

  get side(): "only" {
    return "only";
  }

  get isShared(): boolean {
    return false;
  }

  /** Its seats stand aside, not the call. */
  get isAside(): boolean {
    return false;
  }

  remind(): void {
    // Its seats are reminded.
  }

  override get wants(): readonly Kind[] {
    return this.members.all.map(({ kind }) => kind);
  }

  override *owners(): IterableIterator<object> {
    yield this.owner;
    yield* ownersAround(this.caller);
  }

  /** The first member's, as events tell it from the first time on. */
  override get toldId(): string {
    const { first } = this.members;
    this.#toldId ??= this.seats.find(({ member }) => member === first)?.seatId ?? first.env.wireId();
    return this.#toldId;
  }

  override start(soon?: () => void): Promise<HoldRecord<GroupGrant> | undefined> {
    // The close of any member's client ends it.
    for (const { sites } of this.members.envs) sites.began(this);
    return super.start(soon);
  }

  override announce(): void {
    this.hasWaited = true;
    if (this.waitsSince === undefined) for (const { stir } of this.members.envs.slice(1)) stir();
    super.announce();
  }

  /** A seat at this member, to be started. */
  protected seatAt(member: Member, waits: boolean, limit?: number): Seat {
    const frame = this.#frames.get(member);
    const seat = new Seat({ member, of: this, frame, waits, ...(limit === undefined ? {} : { limit }) });
    this.seats.push(seat);
    return seat;
  }

  /** The frame of its run at this member. */
  protected frameAt(member: Member): Frame | undefined {
    return this.#frames.get(member);
  }

  /** Gives the seats of this round back, the last first. */
  protected giveBack(): Promise<unknown> {
    this.members.gather();
    return Promise.all(
      this.seats
        .splice(0)
        .reverse()
        .map((seat) => seat.leave()),
    );
  }

  /** It has its hold, made of these seats; what others of the round are granted later joins. */
  protected accept(group: GroupGrant): void {
    const { frame, owner, members } = this;
    this.seats.length = 0;
    trace?.('lock "%s": granted to %s', this.lockName, group.ownerId);
    if (!frame) owner.opened(group.hold);
    if (this.callSite) group.hold.callSite = this.callSite;
    group.tellGrant(this.env.clock.mono() - this.begun);
    members.follow(group.hold);
    this.grant(group.hold);
    // The owner's other calls re-enter, or wait for their turns.
    owner.look(members.key);
  }

  protected override tellWaiting(): void {
    trace?.('lock "%s": %s waits', this.lockName, this.toldId);
    this.members.emit("waiting", { ownerId: this.toldId });
  }

  protected override tellEnd(error: unknown): void {
    this.members.tellEnd(this.toldId, this, this.env.clock.mono() - this.begun, error);
  }

  protected override withdraw(): Promise<unknown> | undefined {
    return this.seats.length > 0 ? this.giveBack() : undefined;
  }

  protected override ended(): void {
    for (const { sites } of this.members.envs) sites.over(this);
    this.owner.over(this);
  }

  protected override unsure(): void {
    // Its seats know.
  }

  protected override unavailable(): unknown {
    return this.members.nobodyAnswered() ?? super.unavailable();
  }

  // It sends nothing itself.

  protected override request(): never {
    throw new Error("a group has no command");
  }

  protected override answered(): void {
    this.request();
  }

  protected override failed(error: unknown): void {
    this.end(error);
  }
}
