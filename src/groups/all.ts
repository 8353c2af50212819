/**
 * How a call gets all members of a group, or none. It tries all at once. If a member is not free, it gives back what it
 * took, and waits in the line of that member as any call does. Then it tries the others again. Nothing is held while it
 * waits, so no orders of members can dead-lock.
 */
import { instant } from "../base/clock.js";
import { isLockError, LockLostError } from "../base/errors.js";
import { untilDeadline } from "../base/lease.js";
import type { Kind } from "../kinds/kind.js";
import type { Grant } from "../lock/grant.js";
import { GroupCall } from "./group-call.js";
import { isUnresponsive, outcomes } from "./members.js";
import { Seat } from "./seat.js";

/** What may be missing of a lease when the last member is granted: a share of it, and milliseconds. */
const SHARE_OF_LEASE = 1 / 100;
const MOST_OF_LEASE = 50;
/** Milliseconds: the longest pause after a lost round for which it had waited, in which another call comes through. */
const LONGEST_PAUSE = 8;

export class AllCall extends GroupCall {
  /** The seat that begins the round alone: it waits in its member's line. */
  #awaited: Seat | undefined;

  override step(): void {
    // Others of this process wait for a member: a try of all would disturb them, and be refused.
    const isWanted = (member: Kind) =>
      member.env.sites.get(member)?.first !== undefined && !this.owner.grantOf(member.lockKey);
    this.#round(this.wait > 0 ? this.wanted.parts.find(isWanted) : undefined);
  }

  override tryNow(): void {
    // It stands in no line of its own.
  }

  /** While it waits for one member, what that one's seat knows counts. */
  override get isRefused(): boolean {
    const awaited = this.#awaited;
    if (!awaited || awaited.state === "over") return super.isRefused;
    return awaited.isRefused && !isUnresponsive(awaited.wanted);
  }

  override voted(seat: Seat): void {
    const { seats } = this;
    if (this.state === "over" || !seats.includes(seat)) return;
    if (seats.some(({ state }) => state !== "over")) return;
    const areGranted = seats.every(({ hold }) => hold);
    if (areGranted && seats.length < this.wanted.parts.length) this.#tryOthers();
    else this.#count();
  }

  /**
   * Waits for a member that is not free, if any, then tries all others at once. With both sides of one lock as members it
   * waits for the write side: a reader is refused that.
   */
  #round(missing: Kind | undefined): void {
    const awaited = missing && this.wanted.parts.find(({ lockKey }) => lockKey === missing.lockKey);
    this.seats = [];
    this.#awaited = awaited && new Seat(this, awaited, true);
    if (this.#awaited) this.#ask([this.#awaited]);
    else this.#tryOthers();
  }

  /** Of both sides of one lock the second is tried once the first is granted. */
  #tryOthers(): void {
    const others = this.wanted.parts.filter((part) => this.seats.every(({ wanted }) => wanted !== part));
    const isFirst = ({ lockKey }: Kind, i: number) =>
      others.findIndex((other) => other.lockKey === lockKey) === i;
    this.#ask(others.filter(isFirst).map((part) => new Seat(this, part)));
  }

  #ask(seats: readonly Seat[]): void {
    this.seats = [...this.seats, ...seats];
    this.tries();
    this.wanted.gather();
    for (const seat of seats) seat.step();
  }

  /** All seats have voted. */
  #count(): void {
    // The answers are known from now on, until the next round.
    this.tries();
    const refused = this.seats.find(({ vote }) => vote === false);
    if (refused && this.wait > 0) this.announce();
    if (this.state === "over") return;
    // Silence changes nothing for a call that has waited, nor for one that is refused anyhow.
    const mayPass = this.hasWaited || refused !== undefined;
    const isSilent = ({ error }: Seat) => mayPass && isLockError(error, "UNAVAILABLE");
    const fault = this.seats.find((seat) => seat.error !== undefined && !isSilent(seat));
    if (fault) return this.#afterUndo(() => this.end(fault.error));
    const missing = refused ?? this.seats.find(isSilent);
    this.unanswered = !refused && missing !== undefined;
    if (!missing) return this.#conclude();
    if (this.wait === 0) return this.#afterUndo(() => this.refuse(0));
    void this.undo();
    const next = () => this.#round(missing.wanted);
    if (!this.#awaited) return next();
    this.later(this.env.settings.random() * LONGEST_PAUSE, next);
  }

  /** Ends the call once nothing of it is left: others may try right after that. */
  #afterUndo(end: () => void): void {
    void this.undo().then(() => {
      if (this.state !== "over") end();
    });
  }

  /** All members are taken. The lease begins now, so what was taken before is raised; a silent member keeps its deadline. */
  #conclude(): void {
    const { lease } = this.asked;
    const grants = this.seats.flatMap(({ hold }) => hold?.grant ?? []);
    const short = lease === undefined ? [] : grants.filter((grant) => isShort(grant, lease));
    if (short.length === 0) return this.#acceptAll(grants);
    void outcomes(short.map((grant) => grant.extend(lease as number))).then(({ errors }) => {
      const fault = errors.find((error) => !isLockError(error, "UNAVAILABLE"));
      if (fault) this.end(fault);
      else this.#acceptAll(grants);
    });
  }

  #acceptAll(grants: readonly Grant[]): void {
    if (this.state === "over") return;
    const lost = grants.find(({ isHeld }) => !isHeld);
    if (!lost) return void this.accept();
    const reason = lost.loss?.reason ?? "expired";
    this.end(new LockLostError(this.lockName, reason, this.env.clock.wall()));
  }
}

/** Whether too much of the lease is missing: its member was taken long before the last one. */
function isShort(grant: Grant, lease: number): boolean {
  const { clock, settings } = grant.env;
  const least = lease - Math.min(MOST_OF_LEASE, lease * SHARE_OF_LEASE);
  return grant.left(instant(clock)) < untilDeadline(least, settings.drift, 0);
}
