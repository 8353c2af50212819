/**
 * How a call gets a majority of the masters of a RedLock. A round asks all masters at once, and their answers are votes. With
 * a majority in favour, and time left of the lease, the call has its hold; what comes later joins. A lost round gives all
 * back, everywhere. Then the call sleeps until messages come from a majority, and after a split vote for a random time more.
 * While the turn of this process lasts, the releases of one call are the round of the next one here.
 *
 *     the round   | first call, or wait 0     | waits
 *    -------------|---------------------------|------------------------------------------
 *     won         | granted                   | granted
 *     lost        | sleeps; wait 0: refused   | sleeps until messages, or the leases end
 *     unanswered  | QUORUM                    | sleeps until messages, or pollCap
 */
import { instant } from "../base/clock.js";
import { LockLostError } from "../base/errors.js";
import type { Kind } from "../kinds/kind.js";
import type { Grant } from "../lock/grant.js";
import type { HoldRecord } from "../lock/hold-record.js";
import type { Listener } from "../pubsub/router.js";
import { GroupCall } from "./group-call.js";
import type { GroupGrant } from "./group-grant.js";
import type { Masters } from "./masters.js";
import { isUnresponsive } from "./members.js";
import { Seat } from "./seat.js";

/** After a split vote a call pauses for a random time: of so many rounds as long as the last one, and milliseconds at most. */
const MOST_ROUNDS = 8;
const LONGEST_PAUSE = 160;
/** Milliseconds: where members wake waiters one by one (fair locks), a waiter for a majority tries at random times up to this. */
const LONGEST_LOOK = 250;

export class MajorityCall extends GroupCall<Masters> {
  /** Monotonic milliseconds: no round begins before. */
  #notBefore = 0;
  #group: GroupGrant | undefined;
  /** Its round is made of releases of this process. */
  #isSuccessor = false;
  /** Ends the time that the masters have for their answers. */
  #stopTimer: (() => void) | undefined;

  override step(): void {
    if (!this.#mayGoOn()) return;
    if (this.wanted.areHeldBy(this.owner)) this.#round();
    else if (!this.place) this.env.sites.enter(this);
  }

  override tryNow(): void {
    if (!this.#mayGoOn()) return;
    const pause = this.site ? this.#notBefore - this.env.clock.mono() : 0;
    if (pause > 0) this.site?.sleep(pause);
    else this.#round();
  }

  /** One master's message wakes no call: with one vote free no call wins. */
  override listen(listener: Listener): () => void {
    const { parts, quorum } = this.wanted;
    const [confirmed, heard, deaf] = [new Set<Kind>(), new Set<Kind>(), new Set<Kind>()];
    const stops = parts.map((member) =>
      member.env.router.subscribe(member.channel, {
        hint: () => {
          // The first is the confirmation of the server: those of a majority are one message.
          const told = confirmed.has(member) ? heard : confirmed;
          if (told.add(member).size !== quorum) return;
          heard.clear();
          listener.hint();
        },
        refused: (error, channel) => {
          if (deaf.add(member).size > parts.length - quorum) listener.refused(error, channel);
        },
      }),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }

  override get longestSleep(): number {
    const isQueued = this.wanted.parts.some(({ traits }) => traits.serverQueued);
    return isQueued ? this.env.settings.random() * LONGEST_LOOK : super.longestSleep;
  }

  /** That others have it is no longer known once too many masters are silent. */
  protected override get isReached(): boolean {
    const { parts, quorum } = this.wanted;
    return parts.filter(isUnresponsive).length <= parts.length - quorum;
  }

  override voted(seat: Seat): void {
    // What is granted after the majority has its hold joins it.
    this.#group?.join(seat);
    const now = instant(this.env.clock);
    let [open, held, answered] = [0, 0, 0];
    for (const { state, hold, vote } of this.seats) {
      hold?.grant.check(now);
      if (state !== "over") open++;
      if (hold?.state === "live") held++;
      if (vote !== undefined) answered++;
    }
    if (open === 0) this.#stopTimer?.();
    if (this.state === "over" || !this.seats.includes(seat)) return;
    const { quorum } = this.wanted;
    // No majority can grant it any more, and it is known whether others have it.
    const isLost = held + open < quorum && answered >= quorum;
    if (held >= quorum) {
      if (!this.#isSuccessor) this.site?.turn.begin();
      this.#group = this.accept();
    } else if (isLost || open === 0) this.#lose();
  }

  /** False while it asks, and while it waits for runs of its owner that have its members, or were called before. */
  #mayGoOn(): boolean {
    const { owner, state } = this;
    if (state === "over" || state === "trying") return false;
    if (this.wanted.turnKeys.every((key) => owner.admits(this, key))) return true;
    if (this.wait === 0) this.refuse(0);
    else this.standAside();
    return false;
  }

  /**
   * These holds on the members are about to be given back. While the turn of this process lasts, that grants the members to
   * this call. After the turn it makes way for others; who listens to a majority of the masters is not known.
   */
  succeed(holds: readonly HoldRecord<Grant>[]): void {
    const { site } = this;
    if (site?.turn.lasts === false) this.#notBefore = this.env.clock.mono() + site.turn.makesWay();
    else if (this.#mayGoOn() && !this.wanted.areHeldBy(this.owner)) {
      this.tries();
      this.#ask(holds);
    }
  }

  #round(): void {
    this.tries();
    const connecting = this.wanted.connecting();
    if (connecting) void connecting.then(() => this.#ask());
    else this.#ask();
  }

  /** Asks each master that is worth it, all at once; where a hold is given back, by that release. */
  #ask(released: readonly HoldRecord<Grant>[] = []): void {
    if (this.state === "over") return;
    const { wanted: members, asked, env } = this;
    this.sentAt = instant(env.clock);
    const seats = members.parts.map((member) => new Seat(this, member));
    this.seats = seats;
    this.#isSuccessor = released.length > 0;
    this.#stopTimer = env.clock.after(members.answerTime(asked.lease), () => {
      for (const seat of seats) seat.giveUp();
    });
    const { worthAsking } = members;
    for (const seat of seats) {
      const hold = released.find(({ lockKey }) => lockKey === seat.lockKey);
      if (hold && seat.succeed() !== undefined) hold.successor = seat;
      else if (worthAsking.includes(seat.wanted)) seat.step();
      else seat.giveUp();
    }
  }

  #lose(): void {
    const { clock, settings } = this.env;
    const { seats } = this;
    const { quorum } = this.wanted;
    const inFavour = seats.filter(({ vote }) => vote).length;
    void this.undo();
    const round = Math.max(1, clock.mono() - this.sentAt.mono);
    const pause = inFavour > 0 ? settings.random() * Math.min(LONGEST_PAUSE, MOST_ROUNDS * round) : 0;
    this.#notBefore = clock.mono() + pause;
    const votes = seats.filter(({ vote }) => vote !== undefined);
    if (votes.length < quorum) return this.#unheard(seats);
    // Masters of a majority have granted it, too late: null would mean that another owner has the lock.
    if (this.wait === 0 && inFavour >= quorum) {
      return this.end(new LockLostError(this.lockName, "expired", clock.wall()));
    }
    if (this.wait > 0 && this.wanted.areHeldBy(this.owner)) {
      this.unanswered = false;
      return this.#sleep(Math.max(pause, this.wanted.answerTime(this.asked.lease)));
    }
    // When a majority will be free, if nobody gives it back before.
    const frees = seats.map(({ vote, freeIn }) => (vote ? 0 : freeIn)).sort((a, b) => a - b);
    this.refuse(Math.min(this.longestSleep, Math.max(frees[quorum - 1] ?? 0, pause)));
  }

  /** Too few masters have answered. */
  #unheard(seats: readonly Seat[]): void {
    const { wanted: members, env } = this;
    const silent = seats.filter(({ vote }) => vote === undefined);
    this.unanswered = true;
    if (!this.hasWaited || this.wait === 0) {
      const errors = silent.map(({ error }) => error);
      return this.end(members.undecided({ values: seats.map(({ vote }) => vote), errors }));
    }
    this.#sleep(env.settings.pollCap);
  }

  /** Sleeps until its next round, in line; but aside if its owner has a majority, for which those in line wait. */
  #sleep(ms: number): void {
    if (!this.wanted.areHeldBy(this.owner)) return this.env.sites.of(this).refused(this, ms);
    this.standAside();
    if (this.state !== "over") this.later(ms, () => this.step());
  }
}
