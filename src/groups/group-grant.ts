/** A hold on a group of locks, made of grants of its members: it lives while a quorum of them does. */
import {
  isLockError,
  type LockError,
  type LockLostError,
  type LossReason,
  withErrors,
} from "../base/errors.js";
import type { Grant } from "../locks/grant.js";
import type { Heir } from "../locks/heir.js";
import { Held } from "../locks/held.js";
import { quietly } from "../locks/work.js";
import { outside, type Party } from "../owners/context.js";
import type { Member, Roster } from "./roster.js";
import { countFulfilled, rejected, settled } from "./settled.js";

/** A call of this process that waits for the group. */
export interface Successor {
  /** Takes part in the command that gives this member back; undefined if it cannot. `offered`: others go first. */
  inherit(member: Member, offered: boolean): Heir | undefined;
}

export class GroupGrant extends Held {
  readonly acquiredAt: number;
  readonly owner: Party;
  /** In the order of the members; fewer than they are if a quorum was enough. */
  readonly grants: readonly Grant[];
  /** Told once, when it is to be given back. */
  onRelease: (() => void) | undefined;
  readonly #roster: Roster;
  /** The release that is under way, or was the last. */
  #release: Promise<void> | undefined;

  constructor(roster: Roster, owner: Party, grants: readonly Grant[]) {
    super();
    this.#roster = roster;
    this.owner = owner;
    this.grants = grants;
    this.acquiredAt = roster.clock.wall();
  }

  get lockName(): string {
    return this.#roster.name;
  }

  get ownerId(): string {
    return this.grants[0]?.ownerId ?? "";
  }

  get remaining(): number {
    if (this.state === "lost") return 0;
    return this.#roster.best(this.grants.map((grant) => (grant.isHeld ? grant.remaining : 0)));
  }

  /** From now on the loss of members counts. */
  watch(): void {
    for (const grant of this.grants) {
      grant.onLost = () => this.#memberLost(grant);
      if (grant.loss) this.#memberLost(grant);
    }
  }

  check(): void {
    for (const grant of this.grants) grant.check();
  }

  async extend(lease: number): Promise<void> {
    this.check();
    this.assertUsable();
    await this.#enough(this.grants.map((grant) => grant.extend(lease)));
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
    return this.#roster.clock.wall();
  }

  #memberLost({ loss }: Grant): void {
    if (this.state !== "held") return;
    const left = this.#roster.lastFirst.filter((member) => this.#grantOf(member)?.state === "held");
    if (left.length >= this.#roster.quorum) return;
    this.#lose(loss?.reason ?? "expired");
    for (const member of left) void quietly((this.#grantOf(member) as Grant).release());
  }

  #lose(reason: LossReason): LockLostError {
    const { held, ownerId } = this;
    const losses = this.grants.flatMap(({ loss }) => loss ?? []);
    const loss = withErrors(this.lose(reason), losses);
    outside(() => this.tellLoss());
    this.#roster.emit("lost", { ownerId, reason, held });
    return loss;
  }

  /** A close was told by the signal; its unlock has nothing to add. */
  async #reportLoss(): Promise<void> {
    if (this.loss && this.loss.reason !== "closed") throw this.loss;
  }

  async #giveBack(): Promise<void> {
    this.state = "ended";
    const { engine, key } = this.#roster;
    // With an inner hold nothing comes free that those in line could have.
    const inner = this.grants.filter((grant) => !grant.inner).length < this.#roster.quorum;
    const { released, heirs } = inner ? { released: this.#releaseAll(), heirs: 0 } : this.#handOver();
    try {
      await this.#enough(released);
    } catch (error) {
      if (isLockError(error, "LOCK_LOST")) this.#lose((error as LockLostError).reason);
      else if (isLockError(error, "UNAVAILABLE")) this.#goOn();
      throw error;
    } finally {
      // Who does not listen yet is told here.
      if (heirs === 0 && !inner) engine.queue(key)?.released(false);
    }
    this.#tellRelease();
  }

  /** Gives all members back. The next call of this process may be granted them by the same commands. */
  #handOver(): { released: readonly Promise<void>[]; heirs: number } {
    const { engine, key } = this.#roster;
    let released: readonly Promise<void>[] | undefined;
    let heirs = 0;
    engine.queue(key)?.handOver((call, offered) => {
      const successor = call as unknown as Successor;
      released = this.#releaseAll((member) => {
        const heir = successor.inherit(member, offered);
        if (heir) heirs++;
        return heir;
      });
      return heirs > 0;
    });
    released ??= this.#releaseAll();
    return { released, heirs };
  }

  #releaseAll(heirOf?: (member: Member) => Heir | undefined): readonly Promise<void>[] {
    const released: Promise<void>[] = [];
    for (const member of this.#roster.lastFirst) {
      const grant = this.#grantOf(member);
      if (grant) released.push(grant.release(heirOf && (() => heirOf(member))));
    }
    return released;
  }

  /** The members' releases go on in the background; a further call asks again. */
  #goOn(): void {
    this.#release = undefined;
    const work = this.grants.map(({ outcome }) => outcome ?? Promise.resolve());
    const { quorum } = this.#roster;
    void settled(work, (so) => countFulfilled(so) >= quorum).then((results) => {
      if (countFulfilled(results) >= quorum) this.#tellRelease();
    });
  }

  #tellRelease(): void {
    if (!this.announced) return;
    this.announced = false;
    this.#roster.emit("released", { ownerId: this.ownerId, held: this.held });
  }

  /** Undefined for a member that is not part of the quorum. */
  #grantOf({ primitive }: Member): Grant | undefined {
    return this.grants.find((grant) => grant.primitive === primitive);
  }

  /** As soon as a quorum has done it. @throws the first LockError, with all of them in `errors` */
  async #enough(work: readonly Promise<void>[]): Promise<void> {
    const { quorum } = this.#roster;
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
