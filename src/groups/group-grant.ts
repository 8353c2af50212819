/** A hold on a group of locks, made of grants of the group's members: the hold lives while a quorum of the grants does. */
import type { CallSite } from "../base/call-site.js";
import type { Clock } from "../base/clock.js";
import { isLockError, type LockLostError, type LossReason } from "../base/errors.js";
import { quietly } from "../base/work.js";
import { leaveAlone } from "../locks/dropped.js";
import type { Hold } from "../locks/hold.js";
import { HoldRecord } from "../locks/hold-record.js";
import { hasAnother, liveHolds } from "../locks/holds.js";
import { dropExpired } from "../locks/loss.js";
import { type Grant, giveOwner, knownLockOf } from "../locks/owner-lock.js";
import { extend } from "../locks/release.js";
import { tellGrant } from "../locks/telling.js";
import { actorOf, OwnerRecord, outside } from "../owners/context.js";
import { GroupRecord } from "./group-record.js";
import { handOver, releaseAll } from "./group-release.js";
import { LateCalls } from "./late-calls.js";
import type { Members } from "./members.js";
import { mostDone, withErrors } from "./votes.js";

export class GroupGrant extends HoldRecord {
  readonly acquiredAt: number;
  /** The owner id of the first member that has granted the hold, or may yet grant it. */
  readonly ownerId: string;
  /** The hold was taken by `lock()` or `tryLock()`, not by `run()`. */
  isBare = false;
  /** The user's object for this hold. */
  view: Hold | undefined;
  /** Called when a release begins. */
  onRelease: (() => void) | undefined;
  /** In the order of the members; of a RedLock perhaps of a majority only. */
  grants: readonly Grant[];
  readonly members: Members;
  /** Undefined for a new owner until it is asked for. */
  #owner: OwnerRecord | undefined;
  #late: LateCalls | undefined;
  /** Milliseconds of the last extend. */
  #term: number | undefined;
  /** When the call that took the hold began, in monotonic milliseconds. */
  #begun = 0;
  #callSite: CallSite | undefined;
  /** The last release, under way or done. */
  #release: Promise<void> | undefined;

  constructor(members: Members, owner: OwnerRecord | undefined, grants: readonly Grant[], ownerId: string) {
    super();
    this.members = members;
    this.#owner = owner;
    this.grants = grants;
    this.ownerId = ownerId;
    this.acquiredAt = members.clock.wall();
  }

  get lockName(): string {
    return this.members.name;
  }

  get owner(): OwnerRecord {
    return this.#owner ?? this.#giveOwner();
  }

  get remaining(): number {
    if (this.state === "lost") return 0;
    return this.members.best(this.grants.map((grant) => (grant.state === "live" ? grant.remaining : 0)));
  }

  /** From now on members that end count: with fewer than a quorum left the hold is lost. */
  watch(): void {
    for (const grant of this.grants) this.#watchMember(grant);
  }

  /** The calls for members that had not answered when a quorum had granted the hold. */
  get late(): LateCalls {
    this.#late ??= new LateCalls((grant) => this.#join(grant));
    return this.#late;
  }

  /** Called right before the call that took the hold resolves; that call began at `begun` (monotonic milliseconds). */
  announce(begun: number, callSite: CallSite | undefined): void {
    this.#begun = begun;
    this.#callSite = callSite;
    for (const grant of this.grants) this.#announceMember(grant);
    this.announced = true;
    this.members.tellGrant(this, this.clock.mono() - begun, this.#isNested);
    this.members.follow(this);
  }

  /** Who asks for a member's hold, its signal or its owner may keep nothing else: from now on nobody waits for garbage. */
  forget(member: HoldRecord): void {
    if (member.state === "live") leaveAlone(this);
  }

  check(): void {
    for (const { own } of this.grants) dropExpired(own);
  }

  async extend(lease: number): Promise<void> {
    this.check();
    this.assertUsable();
    this.#term = lease;
    await this.#enough(this.grants.map((grant) => extend(grant, lease)));
  }

  /** A second call shares the first one's outcome; after UNAVAILABLE a further call asks again. */
  release(): Promise<void> {
    if (!this.#release) {
      this.onRelease?.();
      this.check();
      this.#release = this.state === "lost" ? this.#reportLoss() : this.#giveBack();
      this.outcome = this.#release;
    }
    return this.#release;
  }

  protected get clock(): Clock {
    return this.members.clock;
  }

  /** From now on the holds and calls of the members are a new owner's. */
  #giveOwner(): OwnerRecord {
    const owner = new OwnerRecord();
    this.#owner = owner;
    for (const { own } of this.grants) giveOwner(own, owner);
    this.#late?.giveOwner(owner);
    if (!this.outcome) GroupRecord.push(owner, this.members.key, this);
    return owner;
  }

  #join(grant: Grant): void {
    const joined = [...this.grants, grant];
    this.grants = this.members.all.flatMap(({ backend }) =>
      joined.filter((each) => each.backend === backend),
    );
    if (this.announced) this.#announceMember(grant);
    this.#watchMember(grant);
    if (this.#term !== undefined) void quietly(extend(grant, this.#term));
  }

  #watchMember(grant: Grant): void {
    grant.onOver = () => this.#memberOver(grant);
    grant.drop = this;
    if (grant.loss) this.#memberOver(grant);
  }

  /** Whether the owner has other holds on a quorum, on whichever members this hold is. */
  get #isNested(): boolean {
    const owner = this.#owner;
    if (!owner) return false;
    const held = this.members.all.filter(({ key }) => {
      const own = knownLockOf(actorOf(owner, key), key);
      return own && liveHolds(own).some((grant) => !this.grants.includes(grant));
    });
    return held.length >= this.members.quorum;
  }

  #announceMember(grant: Grant): void {
    const waited = this.members.clock.mono() - this.#begun;
    tellGrant(grant.own.table.env, grant.backend, grant, waited, this.#callSite);
  }

  /** A member was lost, or was given back by an unlock of its own. */
  #memberOver({ loss }: Grant): void {
    if (this.state !== "live") return;
    const left = this.grants.filter(({ state }) => state === "live");
    if (left.length >= this.members.quorum) return;
    this.#lose(loss?.reason ?? "forced");
    for (const released of releaseAll(this.members, left)) void quietly(released);
  }

  #lose(reason: LossReason): LockLostError {
    this.#late?.drop();
    const { heldFor, ownerId } = this;
    const losses = this.grants.flatMap(({ loss }) => loss ?? []);
    const loss = withErrors(this.lose(reason), losses);
    outside(() => this.tellLoss());
    this.members.emit("lost", { ownerId, reason, held: heldFor });
    return loss;
  }

  /** Rejects with the loss. A loss by close() is no error of the unlock: the signal has told it. */
  async #reportLoss(): Promise<void> {
    if (this.loss && this.loss.reason !== "closed") throw this.loss;
  }

  async #giveBack(): Promise<void> {
    this.end();
    // While the owner keeps another hold on a quorum, nothing comes free for the calls in the queue.
    const inner = this.grants.filter((grant) => !hasAnother(grant.own, grant)).length < this.members.quorum;
    const { released, successors } = inner
      ? { released: releaseAll(this.members, this.grants), successors: 0 }
      : handOver(this.members, this.grants);
    // Late members are given back last: a quorum of the others is enough for the answer.
    const late = this.#late?.end();
    try {
      await this.#enough(released, late);
    } catch (error) {
      if (isLockError(error, "LOCK_LOST")) this.#lose((error as LockLostError).reason);
      else if (isLockError(error, "UNAVAILABLE")) this.#goOn();
      throw error;
    } finally {
      // A waiter of this process that does not listen yet hears of the release here.
      if (successors === 0 && !inner) this.members.engine.queue(this.members.key)?.released();
    }
    this.#tellRelease();
  }

  /** After UNAVAILABLE: the members' releases go on in the background, and a further unlock() asks again. */
  #goOn(): void {
    this.#release = undefined;
    const work = this.grants.map(({ outcome }) => outcome ?? Promise.resolve());
    void mostDone(this.members.quorum, work).then((error) => {
      if (error === undefined) this.#tellRelease();
      else if (isLockError(error, "LOCK_LOST")) this.#lose((error as LockLostError).reason);
    });
  }

  #tellRelease(): void {
    if (!this.announced) return;
    this.announced = false;
    this.members.tellRelease(this);
  }

  /**
   * See {@link mostDone}.
   * @throws the loss, or the first LockError, with all of them in `errors`
   */
  async #enough(work: readonly Promise<void>[], late?: readonly Promise<void>[]): Promise<void> {
    const error = await mostDone(this.members.quorum, work, late);
    if (error !== undefined) throw this.loss ?? error;
  }
}
