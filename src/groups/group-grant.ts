/** A hold on a group of locks, made of grants of its members: it lives while a quorum of them does. */
import {
  isLockError,
  type LockError,
  type LockLostError,
  type LossReason,
  withErrors,
} from "../base/errors.js";
import type { Acquisition, Successor } from "../engine/acquisition.js";
import type { Hold } from "../locks/hold.js";
import { HoldRecord, type HoldVerbs } from "../locks/hold-record.js";
import { hasAnother } from "../locks/holds.js";
import { dropExpired } from "../locks/loss.js";
import type { Grant } from "../locks/owner-lock.js";
import { extend, release } from "../locks/release.js";
import { quietly } from "../locks/work.js";
import { type OwnerRecord, outside } from "../owners/context.js";
import { type Member, type Members, placeOf } from "./members.js";
import { countFulfilled, rejected, settled } from "./settled.js";

export class GroupGrant extends HoldRecord {
  readonly acquiredAt: number;
  readonly owner: OwnerRecord;
  /** In the order of the members; fewer than they are if a quorum was enough. */
  readonly grants: readonly Grant[];
  /** Taken by `lock()` or `tryLock()`. */
  isBare = false;
  /** What users have of it. */
  view: Hold | undefined;
  /** Told once, when it is to be given back. */
  onRelease: (() => void) | undefined;
  readonly #members: Members;
  /** The release that is under way, or was the last. */
  #release: Promise<void> | undefined;

  constructor(members: Members, owner: OwnerRecord, grants: readonly Grant[]) {
    super();
    this.#members = members;
    this.owner = owner;
    this.grants = grants;
    this.acquiredAt = members.clock.wall();
  }

  get lockName(): string {
    return this.#members.name;
  }

  get ownerId(): string {
    return this.grants[0]?.ownerId ?? "";
  }

  get remaining(): number {
    if (this.state === "lost") return 0;
    return this.#members.best(this.grants.map((grant) => (grant.isHeld ? grant.remaining : 0)));
  }

  /** From now on the loss of members counts. */
  watch(): void {
    for (const grant of this.grants) {
      grant.onLost = () => this.#memberLost(grant);
      if (grant.loss) this.#memberLost(grant);
    }
  }

  check(): void {
    for (const { own } of this.grants) dropExpired(own);
  }

  async extend(lease: number): Promise<void> {
    this.check();
    this.assertUsable();
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

  protected now(): number {
    return this.#members.clock.wall();
  }

  #memberLost({ loss }: Grant): void {
    if (this.state !== "live") return;
    const left = this.#members.lastFirst.filter((member) => this.#grantOf(member)?.state === "live");
    if (left.length >= this.#members.quorum) return;
    this.#lose(loss?.reason ?? "expired");
    for (const member of left) void quietly(release(this.#grantOf(member) as Grant));
  }

  #lose(reason: LossReason): LockLostError {
    const { heldFor, ownerId } = this;
    const losses = this.grants.flatMap(({ loss }) => loss ?? []);
    const loss = withErrors(this.lose(reason), losses);
    outside(() => this.tellLoss());
    this.#members.emit("lost", { ownerId, reason, held: heldFor });
    return loss;
  }

  /** A close was told by the signal; its unlock has nothing to add. */
  async #reportLoss(): Promise<void> {
    if (this.loss && this.loss.reason !== "closed") throw this.loss;
  }

  async #giveBack(): Promise<void> {
    this.state = "ended";
    const { engine, key } = this.#members;
    // With an inner hold nothing comes free that those in line could have.
    const inner = this.grants.filter((grant) => !hasAnother(grant.own, grant)).length < this.#members.quorum;
    const { released, successors } = inner
      ? { released: this.#releaseAll(), successors: 0 }
      : this.#handOver();
    try {
      await this.#enough(released);
    } catch (error) {
      if (isLockError(error, "LOCK_LOST")) this.#lose((error as LockLostError).reason);
      else if (isLockError(error, "UNAVAILABLE")) this.#goOn();
      throw error;
    } finally {
      // Who does not listen yet is told here.
      if (successors === 0 && !inner) engine.queue(key)?.released();
    }
    this.#tellRelease();
  }

  /** Gives all members back. The next call of this process may be granted them by the same commands. */
  #handOver(): { released: readonly Promise<void>[]; successors: number } {
    const { engine, key } = this.#members;
    let released: readonly Promise<void>[] | undefined;
    let successors = 0;
    engine.queue(key)?.handOver((call, offered) => {
      released = this.#releaseAll((member) => {
        const successor = successorAt(call, member, offered);
        if (successor) successors++;
        return successor;
      });
      return successors > 0;
    });
    released ??= this.#releaseAll();
    return { released, successors };
  }

  #releaseAll(choose?: (member: Member) => Successor | undefined): readonly Promise<void>[] {
    const released: Promise<void>[] = [];
    for (const member of this.#members.lastFirst) {
      const grant = this.#grantOf(member);
      if (grant) released.push(release(grant, choose && (() => choose(member))));
    }
    return released;
  }

  /** The members' releases go on in the background; a further call asks again. */
  #goOn(): void {
    this.#release = undefined;
    const work = this.grants.map(({ outcome }) => outcome ?? Promise.resolve());
    const { quorum } = this.#members;
    void settled(work, (so) => countFulfilled(so) >= quorum).then((results) => {
      if (countFulfilled(results) >= quorum) this.#tellRelease();
    });
  }

  #tellRelease(): void {
    if (!this.announced) return;
    this.announced = false;
    this.#members.emit("released", { ownerId: this.ownerId, held: this.heldFor });
  }

  /** Undefined for a member that is not part of the quorum. */
  #grantOf({ backend }: Member): Grant | undefined {
    return this.grants.find((grant) => grant.backend === backend);
  }

  /** As soon as a quorum has done it. @throws the first LockError, with all of them in `errors` */
  async #enough(work: readonly Promise<void>[]): Promise<void> {
    const { quorum } = this.#members;
    const results = await settled(work, (so) => countFulfilled(so) >= quorum);
    if (countFulfilled(results) >= quorum) return;
    if (this.loss) throw this.loss;
    const errors = rejected(results);
    const isLoss = (error: unknown) => isLockError(error, "LOCK_LOST");
    // A majority may do without members that are lost: then it failed for another reason.
    const isLost = this.grants.length - errors.filter(isLoss).length < quorum;
    const first = errors.find((error) => isLockError(error) && isLoss(error) === isLost);
    throw first ? withErrors(first as LockError, errors) : errors[0];
  }
}

/** What can be done with a hold on a group. */
export const GROUP_VERBS: HoldVerbs<GroupGrant> = {
  check: (group) => group.check(),
  extend: (group, lease) => group.extend(lease),
  release: (group) => group.release(),
};

/** Lets a call for the group take part in the command that gives this member back. `offered`: others go first. */
function successorAt(call: Acquisition<unknown>, member: Member, offered: boolean): Successor | undefined {
  const { backend, env } = member;
  // A grant that replicas have to acknowledge travels with its WAIT.
  if (!backend.traits.handoff || env.replicas || env.runner.servers.isUnresponsive(backend.key))
    return undefined;
  const own = offered ? env.router.audience(backend.channel) : undefined;
  return offered && own === undefined ? undefined : call.succeed(placeOf(member), own);
}
