/**
 * How a call gets all members of a group, or none. It tries all at once. If a member is not free, it gives back what it took,
 * waits in the line of that member as any call does, and then tries the others again. Nothing is held while it waits, so no
 * orders of members can dead-lock. After two lost rounds it begins with the first member, so that calls for the same locks
 * queue up there; every other time, for else a call whose first member is free would not sleep.
 */
import { instant } from "../base/clock.js";
import { isLockError, LockLostError } from "../base/errors.js";
import { untilDeadline } from "../base/lease.js";
import { TIME_IS_UP } from "../waiting/waiter.js";
import { GroupCall } from "./group-call.js";
import { GroupGrant } from "./group-grant.js";
import { isUnresponsive, type Member } from "./members.js";
import type { Seat } from "./seat.js";

/** What may be missing of a lease when the last member is granted: a share of it, and milliseconds. */
const SHARE_OF_LEASE = 1 / 100;
const MOST_OF_LEASE = 50;
/** After so many lost rounds the call begins with the first member. */
const IN_ORDER = 2;
/** Milliseconds: the longest pause after a lost round, in which another call comes through. */
const LONGEST_PAUSE = 8;

export class AllCall extends GroupCall {
  #begun = false;
  /** The seat that waits in its member's line. */
  #inLine: Seat | undefined;

  override step(): void {
    if (this.#begun) return;
    this.#begun = true;
    void this.#collect();
  }

  override tryNow(): void {
    this.step();
  }

  override end(reason: unknown): void {
    if (reason === TIME_IS_UP && this.#inLine) {
      this.unanswered = !this.#inLine.isRefused || isUnresponsive(this.#inLine.member);
    }
    super.end(reason);
  }

  get #isOver(): boolean {
    return this.state === "over";
  }

  async #collect(): Promise<void> {
    const [first] = this.members.order as [Member];
    let awaited = this.wait > 0 && this.#areWanted ? first : undefined;
    try {
      for (let lost = 0; ; lost++) {
        const refused = await this.#round(awaited);
        if (this.#isOver) return;
        if (!refused) return await this.#conclude();
        void this.giveBack();
        if (this.wait === 0) return this.refuse(0);
        if (lost > 0) await this.#pause();
        if (this.#isOver) return;
        awaited = lost + 1 >= IN_ORDER && awaited !== first ? first : this.#standIn(refused);
      }
    } catch (error) {
      this.end(error);
    }
  }

  /** Others of this process wait for a member: a try of all would disturb them, and be refused. */
  get #areWanted(): boolean {
    const isWanted = ({ kind, env }: Member) =>
      env.sites.get(kind)?.first !== undefined && !this.owner.grantOf(kind.lockKey);
    return this.members.order.some(isWanted);
  }

  /** With both sides of one lock as members it waits for the write side: a reader is refused that. */
  #standIn({ kind }: Member): Member {
    return this.members.order.find((each) => each.kind.lockKey === kind.lockKey) as Member;
  }

  /** Waits for one member, if any, then tries all others at once. Resolves with the first that is not free. */
  async #round(awaited: Member | undefined): Promise<Member | undefined> {
    if (awaited) await this.#await(awaited);
    if (this.#isOver) return undefined;
    const others = this.members.order.filter((member) => member !== awaited);
    this.tries();
    this.members.gather();
    const taken = new Map<string, Promise<boolean>>();
    const tries = others.map((member) => {
      const { lockKey } = member.kind;
      // Both sides of one lock, one after the other.
      const before = taken.get(lockKey);
      const isTaken = before ? before.then((has) => has && this.#try(member)) : this.#try(member);
      taken.set(lockKey, isTaken);
      return isTaken;
    });
    const results = await Promise.allSettled(tries);
    if (this.#isOver) return undefined;
    this.rest();
    const refused = others.find((_, i) => isRefusal(results[i]));
    if (refused && this.wait > 0) this.announce();
    if (this.#isOver) return undefined;
    let silent: Member | undefined;
    for (const [i, result] of results.entries()) {
      if (result.status === "fulfilled") continue;
      // Silence changes nothing for a call that has waited, nor for one that is refused anyhow.
      const mayPass = (this.hasWaited || refused) && isLockError(result.reason, "UNAVAILABLE");
      if (!mayPass) throw result.reason;
      silent ??= others[i];
    }
    this.unanswered = !refused && silent !== undefined;
    return refused ?? silent;
  }

  async #await(member: Member): Promise<void> {
    this.rest();
    const seat = this.seatAt(member, true);
    this.#inLine = seat;
    await seat.start();
    this.#inLine = undefined;
  }

  async #try(member: Member): Promise<boolean> {
    if (this.#isOver) return false;
    return (await this.seatAt(member, false).start()) !== undefined;
  }

  #pause(): Promise<void> {
    const { clock, settings } = this.env;
    return new Promise((resolve) => {
      this.stopLater(clock.after(settings.random() * LONGEST_PAUSE, resolve));
      this.stopLater(resolve);
    });
  }

  /** All members are taken. The lease begins now, so what was taken before is raised. */
  async #conclude(): Promise<void> {
    const { members, owner, frame, term, isPrivate } = this;
    const at = ({ member }: Seat) => members.all.indexOf(member);
    const seats = [...this.seats].sort((a, b) => at(a) - at(b));
    if (term !== undefined) await this.#raise(seats, term);
    if (this.#isOver) return;
    const renewed = term === undefined;
    const group = new GroupGrant({ members, owner, seats, open: [], frame, renewed, isPrivate });
    group.check();
    if (!group.hold.isHeld) {
      const loss = seats.find(({ hold }) => hold?.loss)?.hold?.loss;
      throw new LockLostError(members.name, loss?.reason ?? "expired", members.clock.wall());
    }
    this.accept(group);
  }

  /** A member that does not answer keeps its earlier deadline. */
  async #raise(seats: readonly Seat[], lease: number): Promise<void> {
    const least = lease - Math.min(MOST_OF_LEASE, lease * SHARE_OF_LEASE);
    const raised = seats.map(async ({ hold, env }) => {
      const { grant } = hold as NonNullable<typeof hold>;
      if (grant.remainingAt(instant(env.clock)) >= untilDeadline(least, env.settings.drift, 0)) return;
      await grant.extend(lease);
    });
    for (const result of await Promise.allSettled(raised)) {
      if (result.status === "rejected" && !isLockError(result.reason, "UNAVAILABLE")) throw result.reason;
    }
  }
}

function isRefusal(result: PromiseSettledResult<boolean> | undefined): boolean {
  return result?.status === "fulfilled" && !result.value;
}
