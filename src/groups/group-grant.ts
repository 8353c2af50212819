/** A hold on a group of locks, made of grants of its members: it lives while a quorum of them does. */
import {
  isLockError,
  type LockError,
  type LockLostError,
  type LossReason,
  withErrors,
} from "../base/errors.js";
import type { Grant } from "../locks/grant.js";
import { Held } from "../locks/held.js";
import { quietly } from "../locks/work.js";
import { outside } from "../owners/context.js";
import type { Roster } from "./roster.js";
import { fulfilled, rejected, settled } from "./settled.js";

export class GroupGrant extends Held {
  readonly acquiredAt: number;
  /** In the order of the members; fewer than they are if a quorum was enough. */
  readonly grants: readonly Grant[];
  /** Told once, when it is to be given back. */
  onRelease: (() => void) | undefined;
  readonly #roster: Roster;
  /** The release that is under way, or was the last. */
  #release: Promise<void> | undefined;

  constructor(roster: Roster, grants: readonly Grant[]) {
    super();
    this.#roster = roster;
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
    const left = this.#lastFirst().filter(({ state }) => state === "held");
    if (left.length >= this.#roster.quorum) return;
    this.#lose(loss?.reason ?? "expired");
    for (const grant of left) void quietly(grant.release());
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
    try {
      await this.#enough(this.#lastFirst().map((grant) => grant.release()));
    } catch (error) {
      if (isLockError(error, "LOCK_LOST")) this.#lose((error as LockLostError).reason);
      else if (isLockError(error, "UNAVAILABLE")) this.#goOn();
      throw error;
    }
    this.#tellRelease();
  }

  /** The members' releases go on in the background; a further call asks again. */
  #goOn(): void {
    this.#release = undefined;
    const work = this.grants.map(({ outcome }) => outcome ?? Promise.resolve());
    const { quorum } = this.#roster;
    void settled(work, (so) => fulfilled(so).length >= quorum).then((results) => {
      if (fulfilled(results).length >= quorum) this.#tellRelease();
    });
  }

  #tellRelease(): void {
    if (!this.announced) return;
    this.announced = false;
    this.#roster.emit("released", { ownerId: this.ownerId, held: this.held });
  }

  /** The reverse of the order in which they are taken. */
  #lastFirst(): Grant[] {
    const places = new Map(this.#roster.order.map(({ primitive }, i) => [primitive, i]));
    const place = ({ primitive }: Grant) => places.get(primitive) ?? 0;
    return [...this.grants].sort((a, b) => place(b) - place(a));
  }

  /** As soon as a quorum has done it. @throws the first LockError, with all of them in `errors` */
  async #enough(work: readonly Promise<void>[]): Promise<void> {
    const { quorum } = this.#roster;
    const results = await settled(work, (so) => fulfilled(so).length >= quorum);
    if (fulfilled(results).length >= quorum) return;
    if (this.loss) throw this.loss;
    const errors = rejected(results);
    const isLoss = (error: unknown) => isLockError(error, "LOCK_LOST");
    // A majority may do without members that are lost: then it failed for another reason.
    const isLost = this.grants.length - errors.filter(isLoss).length < quorum;
    const first = errors.find((error) => isLockError(error) && isLoss(error) === isLost);
    throw first ? withErrors(first as LockError, errors) : errors[0];
  }
}
