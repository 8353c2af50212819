/**
 * How a call gets a majority of the masters of a RedLock. A round asks all masters at once, and their answers are votes. With
 * a majority in favour, and time left of the lease, the call has its hold; what comes later joins. A lost round gives all
 * back, everywhere, and the call sleeps until messages come from a majority; after a split vote for a random time more.
 *
 *     the round   | first call, or wait 0     | waits
 *    -------------|---------------------------|------------------------------------------
 *     won         | granted                   | granted
 *     lost        | sleeps; wait 0: refused   | sleeps until messages, or the leases end
 *     unanswered  | QUORUM                    | sleeps until a majority answers, or pollCap
 */
import { isLockError, LockLostError } from "../base/errors.js";
import { noop } from "../base/work.js";
import type { Grant } from "../lock/grant.js";
import type { HoldRecord } from "../lock/hold-record.js";
import type { OwnCall } from "../owner/record.js";
import type { Listener } from "../pubsub/router.js";
import { GroupCall } from "./group-call.js";
import { GroupGrant } from "./group-grant.js";
import { isUnresponsive, type Member } from "./members.js";
import { answerTime, connecting, isSpared, pauseAfter, untilLook } from "./patience.js";
import type { Seat } from "./seat.js";
import { tooFewAnswers, type Vote, votes } from "./votes.js";

/** Its place among the runs of its owner at one member. */
interface Turn extends OwnCall {
  offered(): boolean;
}

type Ballot = readonly Vote<HoldRecord<Grant> | undefined>[];

export class MajorityCall extends GroupCall {
  /** How many rounds in a row had split votes. */
  #split = 0;
  /** Monotonic milliseconds: no round begins before. */
  #notBefore = 0;
  #isPausing = false;
  /** Members at which it waits for runs of its owner. */
  readonly #turns = new Map<Member, Turn>();

  override step(): void {
    if (this.state === "over" || this.state === "trying") return;
    if (this.#isHeldUp()) return;
    if (this.#reenters) return this.tryNow();
    if (!this.place) this.env.sites.enter(this);
  }

  override tryNow(): void {
    if (this.state === "over" || this.state === "trying" || this.#isPausing) return;
    if (this.#isHeldUp()) return;
    const { clock } = this.env;
    const pause = this.#notBefore - clock.mono();
    if (pause <= 0) return void this.#round();
    this.#isPausing = true;
    const go = () => {
      this.#isPausing = false;
      if (this.state !== "queued") this.tryNow();
    };
    this.stopLater(clock.after(pause, go));
  }

  /** One master's message wakes no call: with one vote free no call wins. */
  override listen(listener: Listener): () => void {
    const { all, quorum } = this.members;
    const [confirmed, heard, deaf] = [new Set<Member>(), new Set<Member>(), new Set<Member>()];
    const stops = all.map((member) =>
      member.env.router.subscribe(member.kind.channel, {
        hint: () => {
          // The first is the confirmation of the server: those of a majority are one message.
          if (!confirmed.has(member)) {
            if (confirmed.add(member).size === quorum) listener.hint();
            return;
          }
          if (heard.add(member).size < quorum) return;
          heard.clear();
          listener.hint();
        },
        refused: (error) => {
          if (deaf.add(member).size > all.length - quorum) listener.refused?.(error);
        },
      }),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }

  get #isOver(): boolean {
    return this.state === "over";
  }

  /** That others have it is no longer known once too many masters are silent. */
  protected override get isReached(): boolean {
    const { all, quorum } = this.members;
    return all.filter(isUnresponsive).length <= all.length - quorum;
  }

  /** Its owner has a majority already. */
  get #reenters(): boolean {
    const { all, quorum } = this.members;
    const isHeld = ({ kind }: Member) => (this.owner.grantOf(kind.lockKey) as Grant | undefined)?.isHeld;
    return all.filter(isHeld).length >= quorum;
  }

  /** Whether it waits for runs of its owner: for one that was called before and waits, or for those that have its members. */
  #isHeldUp(): boolean {
    if (!this.frame) return false;
    const blocked = this.members.order.filter((member) => !this.#turnAt(member).offered());
    if (blocked.length === 0) return false;
    if (this.wait === 0) this.refuse(0);
    else if (this.state !== "aside" || this.waitsSince === undefined) this.standAside();
    return true;
  }

  /** Its place among the owner's runs at this member, which it keeps until it is over. */
  #turnAt(member: Member): Turn {
    const known = this.#turns.get(member);
    if (known) return known;
    const { owner, siteName } = this;
    const { lockKey, traits } = member.kind;
    const isAside = () => this.state === "aside";
    const turn: Turn = {
      lockKey,
      siteName,
      wireId: undefined,
      frame: this.frameAt(member),
      isShared: traits.shared === true,
      get isAside() {
        return isAside();
      },
      isInLine: false,
      step: () => this.step(),
      remind: noop,
      offered: () => owner.turnsOf(lockKey).offers(turn),
    };
    this.#turns.set(member, turn);
    owner.begin(turn);
    this.stopLater(() => owner.over(turn));
    return turn;
  }

  async #round(): Promise<void> {
    try {
      this.tries();
      const arriving = connecting(this.members);
      if (arriving) await arriving;
      if (this.#isOver) return;
      const begun = this.env.clock.mono();
      this.triedAt = begun;
      const seats = this.#ask();
      const ballot = await votes(this.#answers(seats), (so) => this.#isDecided(so));
      if (this.#isOver) return;
      const group = this.#won(seats, ballot);
      if (group) return this.accept(group);
      this.#lose(seats, ballot, this.env.clock.mono() - begun);
    } catch (error) {
      this.end(error);
    }
  }

  /** A seat for each master that is worth asking. */
  #ask(): readonly (Seat | undefined)[] {
    const { all, quorum } = this.members;
    const areEnough = all.filter((member) => !isSpared(member)).length >= quorum;
    return all.map((member) =>
      areEnough && isSpared(member) ? undefined : this.seatAt(member, false, answerTime(member, this.term)),
    );
  }

  #answers(seats: readonly (Seat | undefined)[]): Promise<HoldRecord<Grant> | undefined>[] {
    return seats.map((seat, i) => {
      const { env } = this.members.all[i] as Member;
      return seat ? seat.start() : Promise.reject(env.runner.unavailable(this.lockName));
    });
  }

  /** Whether a majority has granted the round; or none can, and it is known whether others have it. */
  #isDecided(so: Ballot): boolean {
    const { quorum } = this.members;
    const inFavour = so.filter(isGrant).length;
    const open = so.filter((vote) => !vote).length;
    if (inFavour >= quorum) return true;
    const answers = so.filter(isAnswer).length;
    return inFavour + open < quorum && answers >= quorum;
  }

  #won(seats: readonly (Seat | undefined)[], ballot: Ballot): GroupGrant | undefined {
    const { members, owner, frame, isPrivate } = this;
    const granted = seats.filter((seat): seat is Seat => seat?.hold !== undefined);
    if (granted.length < members.quorum) return undefined;
    const open = seats.filter((seat, i): seat is Seat => seat !== undefined && !ballot[i] && !seat.hold);
    const renewed = this.term === undefined;
    const group = new GroupGrant({ members, owner, seats: granted, open, frame, renewed, isPrivate });
    group.check();
    return group.remaining > 0 ? group : undefined;
  }

  #lose(seats: readonly (Seat | undefined)[], ballot: Ballot, took: number): void {
    const { quorum, all } = this.members;
    const { clock, settings } = this.env;
    const granted = ballot.filter(isGrant).length;
    void this.giveBack();
    this.#split = granted > 0 ? this.#split + 1 : 0;
    const pause = granted > 0 ? pauseAfter(this.#split, took, settings.random()) : 0;
    this.#notBefore = clock.mono() + pause;
    if (ballot.filter(isAnswer).length < quorum) return this.#unheard(ballot, granted);
    // Masters of a majority have granted it, too late: null would mean that another owner has the lock.
    const inFavour = ballot.filter((vote) => isAnswer(vote) && !isRefusal(vote)).length;
    if (this.wait === 0 && inFavour >= quorum) {
      return this.end(new LockLostError(this.lockName, "expired", clock.wall()));
    }
    const ttls = all.map((_, i) => {
      if (!isRefusal(ballot[i])) return isAnswer(ballot[i]) ? 0 : Number.POSITIVE_INFINITY;
      const { ttl = -1 } = seats[i] ?? {};
      return ttl < 0 ? Number.POSITIVE_INFINITY : ttl;
    });
    const free = ttls.sort((a, b) => a - b)[quorum - 1] ?? 0;
    const ttl = Math.min(untilLook(this.members), Math.max(free, pause));
    this.rest();
    this.refuse(ttl === Number.POSITIVE_INFINITY ? -1 : ttl);
  }

  /** Too few masters have answered. */
  #unheard(ballot: Ballot, granted: number): void {
    const { members, env } = this;
    this.unanswered = true;
    if (!this.hasWaited || this.wait === 0) {
      return this.end(tooFewAnswers(this.lockName, members.all.length, granted, ballot));
    }
    let missing = members.quorum - ballot.filter(isAnswer).length;
    // The lock may be released meanwhile, and the messages missed: late answers make it try.
    const answered = () => {
      if (--missing === 0) this.tryNow();
    };
    const silent = members.all.filter((_, i) => !isAnswer(ballot[i]));
    for (const {
      env: { runner },
      kind,
    } of silent) {
      this.stopLater(runner.servers.healthOf(kind.key).onAnswer(answered));
    }
    this.rest();
    env.sites.of(this).refused(this, env.settings.pollCap);
  }
}

function isGrant(vote: Vote): boolean {
  return vote?.status === "fulfilled" && vote.value !== undefined;
}

/** Whether a master has said that another owner holds the lock. */
function isRefusal(vote: Vote): boolean {
  return vote?.status === "fulfilled" && vote.value === undefined;
}

/** Whether a master has answered; a grant that came too late counts as an answer. */
function isAnswer(vote: Vote): boolean {
  return vote?.status === "fulfilled" || isLockError(vote?.reason, "LOCK_LOST");
}
