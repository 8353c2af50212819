/**
 * One call for a RedLock, as the engine sees it: each try is a round in which all masters are asked at once. A round that a
 * majority grants gives the call its hold. After a lost round every grant is given back at once, also at masters that gave
 * no answer.
 */
import { instant } from "../base/clock.js";
import { LockLostError } from "../base/errors.js";
import { noop, quietly } from "../base/work.js";
import {
  Acquisition,
  type Attempt,
  type CoWaiters,
  type Listener,
  type QueueTraits,
  type Successor,
} from "../engine/acquisition.js";
import type { RoundBackoff } from "../engine/round-backoff.js";
import type { LockRequest } from "../locks/acquisition-options.js";
import type { Grant } from "../locks/owner-lock.js";
import { release } from "../locks/release.js";
import { GroupGrant } from "./group-grant.js";
import type { Masters } from "./masters.js";
import type { MemberAcquisition } from "./member-acquisition.js";
import { actingOwner, callFor, type MemberRequest, ownerIdOf } from "./member-requests.js";
import { isSpared, isUnresponsive, type Member, type Members, memberKey } from "./members.js";
import { listenToMost, wakeByLateAnswers } from "./quorum-listener.js";
import { settled } from "./settled.js";
import {
  answers,
  answerTime,
  countInFavour,
  granted,
  isDecided,
  isRefusal,
  tooFewAnswers,
  untilLook,
  untilNextLook,
  type Vote,
} from "./votes.js";

const NO_CO_WAITERS: CoWaiters = [];
/** The random part of the pause before a try doubles with each split vote in a row, so many times at most. */
const MOST_DOUBLINGS = 2;

export class RedlockAttempt extends Acquisition<GroupGrant> {
  readonly #members: Members;
  readonly #masters: Masters;
  readonly #requests: readonly MemberRequest[];
  readonly #request: LockRequest;
  /** The calls of the next round, in the order of the members. */
  #calls: readonly MemberAcquisition[];
  #backoff: RoundBackoff | undefined;
  #leave: readonly (() => void)[] = [];
  #stopAwaiting = noop;
  #group: GroupGrant | undefined;
  /** How many rounds in a row had split votes. */
  #clashes = 0;

  constructor(members: Members, masters: Masters, requests: readonly MemberRequest[], request: LockRequest) {
    super();
    this.#members = members;
    this.#masters = masters;
    this.#requests = members.all.map(
      (member) => requests.find((request) => request.member === member) as MemberRequest,
    );
    this.#request = request;
    this.#calls = this.#requests.map((request) => this.#newCall(request));
  }

  override get lockName(): string {
    return this.#members.name;
  }

  override get queueName(): string {
    return this.#members.key;
  }

  override get traits(): QueueTraits {
    const shared = this.#calls.every(({ traits }) => traits.shared);
    const handoff = this.#calls.every(({ traits }) => traits.handoff);
    return { serverQueued: false, advertised: false, shared, handoff };
  }

  /**
   * Calls that one release wakes would split the votes, so they back off in whole rounds: the process that was served
   * longest ago tries first. After a split vote a random part is added.
   */
  override get backoff(): number {
    const { random, clock } = this.#members;
    const chance = this.#clashes > 0 ? random() * 2 ** this.#clashes : 0;
    return this.#backoff?.pause(clock.mono(), chance) ?? 0;
  }

  override get away(): boolean {
    const there = this.#requests.filter(({ member }) => !isUnresponsive(member));
    return there.length < this.#members.quorum;
  }

  override begun(): void {
    const { engine, envs } = this.#members;
    this.#backoff = engine.joinRounds(this.queueName);
    const [, ...others] = envs;
    this.#leave = others.map((env) => env.engine.join(this.lockName, (reason) => engine.end(this, reason)));
    for (const call of this.#calls) call.enter(this);
  }

  override admitted(): boolean {
    return this.#calls.every((call) => call.admitted());
  }

  override reenters(): boolean {
    return this.#calls.filter((call) => call.reenters()).length >= this.#members.quorum;
  }

  override waiting(): void {
    for (const call of this.#calls) call.waiting();
    for (const env of this.#members.envs) env.stir();
    this.#members.emit("waiting", { ownerId: ownerIdOf(this.#requests, this.#members) });
  }

  override withdraw(): void {
    for (const call of this.#calls) call.withdraw();
  }

  override ended(taken: boolean): void {
    const group = this.#group;
    if (!taken) group?.late.drop();
    const won: readonly (Grant | undefined)[] = group?.grants ?? [];
    for (const call of this.#calls) {
      if (!group?.late.has(call)) call.leave(taken && won.includes(call.grant));
    }
    for (const leave of this.#leave) leave();
    this.#stopAwaiting();
    this.#members.engine.leaveRounds(this.queueName);
  }

  override listen(listener: Listener): () => void {
    const { heard } = this.#backoff as RoundBackoff;
    return listenToMost(this.#calls, this.#members.quorum, heard, listener);
  }

  /** The next round counts the masters' answers to these releases as votes, and asks the other masters as usual. */
  override succeed(key: string, own: number | undefined): Successor | undefined {
    if (this.over) return undefined;
    const index = this.#requests.findIndex(({ member }) => memberKey(member) === key);
    return this.#calls[index]?.succeed(key, own);
  }

  override async attempt(limit: number, coWaiters: CoWaiters): Promise<Attempt<GroupGrant>> {
    this.#members.assertOpen();
    const connecting = this.#masters.connecting(this.#answerTime(0));
    // No await without need: during it the owner's next call would overtake this one.
    if (connecting) await connecting;
    if (this.over) return { granted: false, ttl: -1 };
    this.#stopAwaiting();
    const begun = this.#members.clock.mono();
    const nested = this.reenters();
    const inherits = this.#calls.some(({ successor }) => successor);
    const introduced = this.#masters.introduce(this.#answerTime(0));
    const areEnough = this.#members.all.filter((each) => !isSpared(each)).length >= this.#members.quorum;
    const round = this.#calls.map((call, i) => {
      if (areEnough && isSpared(this.#member(i)))
        return Promise.reject(this.#member(i).env.runner.unavailable(call.lockName));
      // Validity counts from the begin of the round, however long a command waits behind others.
      call.since = call.successor?.sent ?? instant(this.#member(i).env.clock);
      // A ticket of one master is no use to a call that needs a majority; a waiting writer's mark is: it keeps new readers out.
      const known = coWaiters && call.traits.advertised ? NO_CO_WAITERS : undefined;
      const within = Math.min(limit, this.#answerTime(i));
      const isPassed = call.successor !== undefined;
      const attempt = call.attempt(within, known);
      return isPassed ? this.#member(i).env.runner.withTimeout(call.lockName, attempt, within) : attempt;
    });
    this.#backoff?.heard.clear();
    const votes = await settled(round, (so) => isDecided(so, this.#members.quorum));
    this.#backoff?.took(this.#members.clock.mono() - begun);
    if (introduced) await introduced;
    this.#masters.assertDistinct();
    if (this.over) return { granted: false, ttl: -1 };
    const acting = actingOwner(this.#request.owner, this.#requests);
    const first = this.#calls.find(({ grant, ownerId }, i) => grant || (!votes[i] && ownerId));
    const group = new GroupGrant(this.#members, acting, granted(votes), first?.ownerId ?? "");
    const { remaining } = group;
    if (remaining <= 0) return this.#lose(round, votes, limit);
    this.#group = group;
    group.watch();
    for (const [i, vote] of round.entries()) {
      if (!votes[i]) group.late.add(this.#calls[i] as MemberAcquisition, vote);
    }
    this.#backoff?.heard.clear();
    if (!nested && !inherits) this.#backoff?.served(this.#members.clock.mono());
    // For so long the next call of this process need not try.
    return { granted: true, value: group, lease: Math.min(remaining, untilLook(this.#members)) };
  }

  #member(i: number): Member {
    return (this.#requests[i] as MemberRequest).member;
  }

  #answerTime(i: number): number {
    return answerTime(this.#member(i).env, this.#request.lease);
  }

  async #lose(
    round: readonly Promise<Attempt<Grant>>[],
    votes: readonly Vote[],
    limit: number,
  ): Promise<Attempt<GroupGrant>> {
    const { quorum } = this.#members;
    if (answers(votes) >= quorum) this.hasWaited = true;
    const returned = this.#giveBack(limit, votes);
    this.#clashes = granted(votes).length > 0 ? Math.min(MOST_DOUBLINGS, this.#clashes + 1) : 0;
    const all = answers(votes) < quorum ? await settled(round, (so) => answers(so) >= quorum) : votes;
    await returned;
    // A majority granted the round, too late: null would mean that another owner has the lock.
    if (this.single && countInFavour(all) >= quorum) {
      throw new LockLostError(this.lockName, "expired", this.#members.clock.wall());
    }
    if (answers(all) >= quorum)
      return { granted: false, ttl: untilNextLook(this.#members, all, this.backoff) };
    this.#stopAwaiting = wakeByLateAnswers(this.#members, all, this);
    throw tooFewAnswers(this.#members, all, granted(all).length);
  }

  /** Gives the round back at all masters; resolves when the masters that had granted it have confirmed, or their time is over. */
  async #giveBack(limit: number, votes: readonly Vote[]): Promise<void> {
    const calls = this.#calls;
    // A refused call left nothing but a waiting writer's mark, which has to stay.
    this.#calls = calls.map((call, i) =>
      call.traits.advertised && isRefusal(votes[i])
        ? call
        : this.#newCall(this.#requests[i] as MemberRequest),
    );
    for (const call of this.#calls) if (!calls.includes(call)) call.enter(this);
    for (const call of calls) {
      if (this.#calls.includes(call)) continue;
      call.orderTry();
      call.leave(false);
    }
    const confirmed = calls.map(async ({ grant, away, lockName }, i) => {
      const time = Math.min(limit, this.#answerTime(i));
      if (grant && !away)
        await quietly(this.#member(i).env.runner.withTimeout(lockName, release(grant), time));
    });
    await Promise.all(confirmed);
  }

  #newCall(request: MemberRequest): MemberAcquisition {
    return callFor(request, this.#request, { lease: this.#request.lease });
  }
}
