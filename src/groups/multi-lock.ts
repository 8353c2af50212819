/** Many locks as one: all of them or none. */

import { checkOptions } from "../base/arguments.js";
import { tellCaller } from "../base/caller.js";
import type { LockKind } from "../base/events.js";
import {
  type Ask,
  OWNER_OPTIONS,
  type OwnedAsk,
  type OwnerOptions,
  owned,
  ownerOf,
} from "../locks/call-options.js";
import type { Lock } from "../locks/lock.js";
import { LockFace } from "../locks/lock-face.js";
import { eventOf } from "../locks/primitive.js";
import { stakeOf, wireIdOf } from "../locks/stakes.js";
import type { Frame, Party } from "../owners/context.js";
import { checkOwner } from "../owners/owner.js";
import { Collection } from "./collection.js";
import type { GroupGrant } from "./group-grant.js";
import { MultiHold } from "./multi-hold.js";
import { checkMembers, type Member, Roster } from "./roster.js";
import { framesOf, openFrames, type Seat, seatsOf } from "./seats.js";
import { fulfilled, rejected, type Settled, settled } from "./settled.js";
import { GroupStake } from "./stake.js";

/** Milliseconds of a lock that is free, as {@link Lock.remainTimeToLive} has it. */
const FREE = -2;

/**
 * Locks of any kind and any client, taken together: all or none. It never waits while it holds a member, so calls with
 * other members or orders cannot dead-lock with it; a member that others want all the time may keep it waiting. The hold
 * ends when that of any member does.
 */
export class MultiLock extends LockFace<MultiHold> {
  protected static readonly kind: LockKind = "multi";
  protected readonly roster: Roster;

  /** @throws TypeError for no lock at all, for what is not a lock of a LockClient, and for the same lock twice */
  constructor(...locks: Lock[]) {
    const members = checkMembers(locks);
    const roster = new Roster(new.target.kind, members, new.target.quorumOf(members.length));
    super(roster.name, roster.key, roster.clock);
    this.roster = roster;
  }

  /** How many of `members` make a hold. */
  protected static quorumOf(members: number): number {
    return members;
  }

  /** Gives all members back whoever holds them; resolves with whether anybody held any. */
  override async forceUnlock(): Promise<boolean> {
    const answers = await this.ask(({ lock }) => lock.forceUnlock());
    return fulfilled(answers).includes(true);
  }

  /** Whether somebody holds all members (of a RedLock: a majority). */
  override async isLocked(): Promise<boolean> {
    const answers = await this.ask(({ lock }) => lock.isLocked());
    return fulfilled(answers).filter(Boolean).length >= this.roster.quorum;
  }

  override async getHoldCount(options?: OwnerOptions): Promise<number> {
    const named = checkOwner(checkOptions(options, OWNER_OPTIONS, "options").owner);
    const { roster } = this;
    roster.assertOpen();
    const held = roster.members.filter(({ key }) => wireIdOf(ownerOf(named, key), key) !== undefined);
    if (held.length < roster.quorum) return 0;
    return this.#best(0, ({ lock }) => lock.getHoldCount(options));
  }

  /** The least of the members (of a RedLock: of the best majority), in milliseconds; -2 when free. */
  override async remainTimeToLive(): Promise<number> {
    return this.#best(FREE, ({ lock }) => lock.remainTimeToLive());
  }

  /** What the members are granted together; undefined if `ask.wait` was not enough. */
  protected collect(seats: readonly Seat[], ask: OwnedAsk): Promise<GroupGrant | undefined> {
    return new Collection(this.roster, seats, ask).collect();
  }

  /** What one member answers to a question, in time. */
  protected inTime<T>(_member: Member, answer: Promise<T>): Promise<T> {
    return answer;
  }

  /** Of too few answers. */
  protected unanswered(results: readonly Settled<unknown>[]): unknown {
    return rejected(results)[0];
  }

  protected override async acquire(ask: Ask): Promise<MultiHold | undefined> {
    if (ask.signal?.aborted) throw ask.signal.reason;
    const { roster } = this;
    const begun = roster.clock.mono();
    roster.assertOpen();
    const own = owned(ask);
    const seats = seatsOf(roster, own);
    const group = await this.collect(seats, own);
    if (!group) return undefined;
    if (!ask.frame) GroupStake.push(own.owner, roster.key, group);
    const waited = roster.clock.mono() - begun;
    const holds = group.grants.map((grant) => {
      const { member } = seats.find((seat) => seat.member.primitive === grant.primitive) as Seat;
      grant.announced = true;
      const { events } = member.env;
      if (events.heard("acquired")) {
        events.emit("acquired", { ...eventOf(grant.primitive), ownerId: grant.ownerId, waited });
      }
      return member.makeHold(grant);
    });
    group.announced = true;
    roster.emit("acquired", { ownerId: group.ownerId, waited });
    return new MultiHold(group, holds);
  }

  protected override openFrame(ask: OwnedAsk, scope: Frame | undefined): Frame {
    return openFrames(this.roster, ask, scope);
  }

  protected override endRun(frame: Frame): void {
    const frames = framesOf(this.roster, frame);
    for (const [i, { key }] of this.roster.order.entries()) {
      const own = frames[i];
      if (own) stakeOf(own.owner, key)?.endRun(own);
    }
  }

  protected override releaseInnermost(owner: Party): Promise<void> | undefined {
    return GroupStake.of(owner, this.roster.key)?.release();
  }

  /** Its owners alone know of theirs. */
  protected override hasBareHold(): boolean {
    return false;
  }

  protected override report(cause: unknown, ownerId: string): void {
    this.roster.emit("error", { ownerId, cause });
  }

  /** Asks all members; one that is silent is not waited for once a quorum has answered. */
  protected async ask<T>(question: (member: Member) => Promise<T>): Promise<readonly Settled<T>[]> {
    const { members, quorum } = this.roster;
    this.roster.assertOpen();
    const asked = members.map((member) => this.inTime(member, question(member)));
    const results = await settled(asked, (so) => {
      const open = members.filter((_, i) => !so[i]);
      return fulfilled(so).length >= quorum && open.every(({ env }) => env.link.unresponsive);
    });
    if (fulfilled(results).length < quorum) tellCaller(this.unanswered(results));
    return results;
  }

  /** What is true of the group, where each member has its own answer; `otherwise`: of one that gives none. */
  async #best(otherwise: number, question: (member: Member) => Promise<number>): Promise<number> {
    const answers = await this.ask(question);
    const values = this.roster.members.map((_, i) => {
      const answer = answers[i];
      return answer?.status === "fulfilled" ? answer.value : otherwise;
    });
    return this.roster.best(values);
  }
}
