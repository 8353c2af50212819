/**
 * One call for a RedLock, as the engine sees it: each try is a round in which all masters are asked at once. Won, the
 * call has what a majority granted; lost, all is given back at once, where no answer came too.
 */
import { instant } from "../base/clock.js";
import type { Attempt, Contender, Fellows, Listener, Standing } from "../engine/contender.js";
import type { Wait } from "../engine/wait.js";
import type { OwnedAsk } from "../locks/call-options.js";
import type { Claim } from "../locks/claim.js";
import type { Env } from "../locks/env.js";
import type { Grant } from "../locks/grant.js";
import type { Heir } from "../locks/heir.js";
import { quietly } from "../locks/work.js";
import { GroupGrant, type Successor } from "./group-grant.js";
import { listenToMost } from "./hearing.js";
import type { Masters } from "./masters.js";
import { Rhythm } from "./rhythm.js";
import type { Member, Roster } from "./roster.js";
import { claimFor, partyOf, type Seat } from "./seats.js";
import { settled } from "./settled.js";
import {
  answers,
  answerTime,
  granted,
  isOutdated,
  isRefusal,
  tooFewAnswers,
  untilFree,
  untilLook,
  type Vote,
} from "./votes.js";

const NO_FELLOWS: Fellows = [];
/** The random part of the pause before a try doubles with each split of the votes in a row, so often at most. */
const MOST_DOUBLINGS = 2;

export class Ballot implements Contender<GroupGrant>, Successor {
  readonly place: undefined;
  readonly #roster: Roster;
  readonly #masters: Masters;
  readonly #seats: readonly Seat[];
  readonly #ask: OwnedAsk;
  /** Of the next round, in the order of the members. */
  #claims: readonly Claim[];
  #wait: Wait | undefined;
  #rhythm: Rhythm | undefined;
  #leave: readonly (() => void)[] = [];
  #over = false;
  #won: readonly (Grant | undefined)[] = [];
  /** Rounds in a row whose votes were split. */
  #clashes = 0;

  constructor(roster: Roster, masters: Masters, seats: readonly Seat[], ask: OwnedAsk) {
    this.#roster = roster;
    this.#masters = masters;
    this.#seats = roster.members.map((member) => seats.find((seat) => seat.member === member) as Seat);
    this.#ask = ask;
    this.#claims = this.#seats.map((seat) => this.#newClaim(seat));
  }

  get lockName(): string {
    return this.#roster.name;
  }

  get line(): string {
    return this.#roster.key;
  }

  get standing(): Standing {
    const together = this.#claims.every(({ standing }) => standing.together);
    const passed = this.#claims.every(({ standing }) => standing.passed);
    return { places: false, marked: false, together, passed };
  }

  get share(): number {
    return 1;
  }

  /**
   * In whole round times, so that those who are woken by the same release do not split the votes: who was served longest
   * ago tries first. Only where the votes were split all the same it is random.
   */
  get pause(): number {
    const { random, clock } = this.#roster;
    const chance = this.#clashes > 0 ? random() * 2 ** this.#clashes : 0;
    return this.#rhythm?.pause(clock.mono(), chance) ?? 0;
  }

  get away(): boolean {
    const there = this.#seats.filter(({ member }) => !member.env.link.unresponsive);
    return there.length < this.#roster.quorum;
  }

  enter(wait: Wait): void {
    this.#wait = wait;
    this.#rhythm = Rhythm.join(this.#roster.engine, this.line);
    const [, ...others] = this.#roster.envs;
    this.#leave = others.map(({ engine }) => engine.join(this.lockName, wait));
    for (const claim of this.#claims) claim.enter(wait);
  }

  admitted(): boolean {
    return this.#claims.every((claim) => claim.admitted());
  }

  reenters(): boolean {
    return this.#claims.filter((claim) => claim.reenters()).length >= this.#roster.quorum;
  }

  waiting(): void {
    for (const claim of this.#claims) claim.waiting();
    this.#roster.emit("waiting", {});
  }

  withdraw(): void {
    for (const claim of this.#claims) claim.withdraw();
  }

  leave(taken: boolean): void {
    this.#over = true;
    // One that is granted by now came too late to be counted.
    for (const claim of this.#claims) claim.leave(taken && this.#won.includes(claim.grant));
    for (const leave of this.#leave) leave();
    this.#rhythm?.leave();
  }

  listen(listener: Listener): () => void {
    const { heard } = this.#rhythm as Rhythm;
    return listenToMost(this.#claims, this.#roster.quorum, heard, listener);
  }

  /** Its next round counts the masters' words on those commands; the others it asks as ever. */
  inherit({ env, key, primitive }: Member, offered: boolean): Heir | undefined {
    const seat = this.#seats.findIndex(
      ({ member }) => member.key === key && member.primitive.side === primitive.side,
    );
    // A grant that replicas have to acknowledge travels with its WAIT.
    if (this.#over || !primitive.standing.passed || env.replicas || env.link.unresponsive) return undefined;
    const own = offered ? env.router.audience(primitive.channel) : undefined;
    return offered && own === undefined ? undefined : this.#claims[seat]?.inherit(own);
  }

  async attempt(limit: number, fellows: Fellows): Promise<Attempt<GroupGrant>> {
    this.#roster.assertOpen();
    const connecting = this.#masters.connecting(this.#answerTime(0));
    // A call of the same owner that comes after this one is not to overtake it.
    if (connecting) await connecting;
    if (this.#over) return { granted: false, ttl: -1 };
    const begun = this.#roster.clock.mono();
    const nested = this.reenters();
    const inherits = this.#claims.some(({ heir }) => heir);
    this.#masters.introduce();
    const spared = !this.away;
    const round = this.#claims.map((claim, i) => {
      // What is sent to a master that is away piles up; a majority can do without it.
      if (spared && this.#env(i).link.unresponsive)
        return Promise.reject(this.#env(i).link.unavailable(claim.lockName));
      // The round as a whole began now, whatever its commands have to wait for.
      claim.since = claim.heir?.sent ?? instant(this.#env(i).clock);
      // Places are not for one who needs a majority of them, marks are: readers let writers go first.
      const known = fellows && claim.standing.marked ? NO_FELLOWS : undefined;
      const within = Math.min(limit, this.#answerTime(i));
      const { heir } = claim;
      const attempt = claim.attempt(within, known);
      return heir ? this.#env(i).link.limited(claim.lockName, attempt, within) : attempt;
    });
    this.#rhythm?.heard.clear();
    const votes = await settled(round, (so) => this.#isDecided(so));
    this.#rhythm?.took(this.#roster.clock.mono() - begun);
    this.#masters.assertDistinct();
    if (this.#over) return { granted: false, ttl: -1 };
    const group = new GroupGrant(this.#roster, partyOf(this.#ask.owner, this.#seats), granted(votes));
    if (!group.isHeld) return this.#lose(round, votes, limit);
    group.watch();
    this.#won = group.grants;
    this.#rhythm?.heard.clear();
    if (!nested && !inherits) this.#rhythm?.served(this.#roster.clock.mono());
    // For so long the next one of this process need not try.
    return { granted: true, value: group, lease: Math.min(group.remaining, untilLook(this.#roster)) };
  }

  #env(i: number): Env {
    return (this.#seats[i] as Seat).member.env;
  }

  #answerTime(i: number): number {
    return answerTime(this.#env(i), this.#ask.lease);
  }

  /** Won and nobody is worth waiting for, or lost for good. */
  #isDecided(votes: readonly Vote[]): boolean {
    const { quorum } = this.#roster;
    const won = granted(votes).length;
    let open = 0;
    let promising = 0;
    for (let i = 0; i < votes.length; i++) {
      if (votes[i]) continue;
      open++;
      if (!this.#env(i).link.unresponsive) promising++;
    }
    return won + open < quorum || (won >= quorum && promising === 0);
  }

  async #lose(
    round: readonly Promise<Attempt<Grant>>[],
    votes: readonly Vote[],
    limit: number,
  ): Promise<Attempt<GroupGrant>> {
    const { quorum } = this.#roster;
    if (answers(votes) >= quorum && this.#wait) this.#wait.seasoned = true;
    const returned = this.#giveBack(limit, votes);
    this.#clashes = granted(votes).length > 0 ? Math.min(MOST_DOUBLINGS, this.#clashes + 1) : 0;
    const all = answers(votes) < quorum ? await settled(round, (so) => answers(so) >= quorum) : votes;
    await returned;
    if (answers(all) < quorum) throw tooFewAnswers(this.#roster, all, granted(all).length);
    return { granted: false, ttl: this.#untilNextLook(all) };
  }

  /** Everywhere; resolves when those who granted something have confirmed it, as far as they answer. */
  async #giveBack(limit: number, votes: readonly Vote[]): Promise<void> {
    const claims = this.#claims;
    // A refusal leaves nothing to give back but the mark of a writer who waits, which is to stay.
    this.#claims = claims.map((claim, i) =>
      claim.standing.marked && isRefusal(votes[i]) ? claim : this.#newClaim(this.#seats[i] as Seat),
    );
    for (const claim of this.#claims) if (!claims.includes(claim)) claim.enter(this.#wait as Wait);
    for (const claim of claims) if (!this.#claims.includes(claim)) claim.leave(false);
    const confirmed = claims.map(async ({ grant, away, lockName }, i) => {
      const time = Math.min(limit, this.#answerTime(i));
      if (grant && !away) await quietly(this.#env(i).link.limited(lockName, grant.release(), time));
    });
    await Promise.all(confirmed);
  }

  #newClaim(seat: Seat): Claim {
    return claimFor(seat, this.#ask, { lease: this.#ask.lease });
  }

  /** Milliseconds until another round, if no message comes before; 0 for one at once, -1 if that is not known. */
  #untilNextLook(votes: readonly Vote[]): number {
    const free = untilFree(this.#roster, votes);
    if (free === 0 && votes.some(isOutdated)) return 0;
    const pause = Math.min(untilLook(this.#roster), Math.max(free, this.pause));
    return pause === Number.POSITIVE_INFINITY ? -1 : Math.max(1, pause);
  }
}
