/**
 * The contract of holds: who has which hold until when, and how it ends. The holds change when a call is made, not when
 * it is answered: from `unlock()` on, others may be granted.
 */
import { type Hold, type Owner, Violation } from "./parties.js";
import type { Side } from "./rules.js";
import { WATCHDOG } from "./world.js";

const DRIFT = 0.01;
/** Milliseconds subtracted from each local deadline; also the precision of timers. */
const MARGIN = 2;

export class Holds {
  readonly all: Hold[] = [];
  readonly #time: { readonly now: number };

  constructor(time: { readonly now: number }) {
    this.#time = time;
  }

  get #now(): number {
    return this.#time.now;
  }

  // State

  /** The holds that the server still has, as far as the contract can tell. */
  live(side?: Side): Hold[] {
    return this.believed().filter((hold) => (side ?? hold.side) === hold.side && !hold.gone);
  }

  liveOf(owner: Owner, side?: Side): Hold[] {
    return this.live(side).filter((hold) => hold.owner === owner);
  }

  /** The holds that their owners believe to have. */
  believed(): Hold[] {
    return this.all.filter((hold) => hold.state === "held" && hold.ends > this.#now);
  }

  nameOf(hold: Hold): string {
    return `hold ${this.all.indexOf(hold)}`;
  }

  /**
   * The values that `remainTimeToLive` may have: both sides live as long as the longest hold; -2 if the lock is free.
   */
  ttl(side: Side): { least: number; most: number } {
    if (this.live(side).length === 0) return { least: -2, most: -2 };
    const live = this.live();
    const writes = (owner: Owner) => live.some((hold) => hold.owner === owner && hold.side === "write");
    // The script that takes a writer's read holds away does not know how long its write holds last.
    const forced = this.all.filter((hold) => hold.gone && hold.side === "read" && writes(hold.owner));
    const left = (holds: readonly Hold[]) => Math.max(...holds.map(({ lapses }) => lapses)) - this.#now;
    // Each command for an owner may renew its holds.
    const renewed = live.some((hold) => hold.renewed) ? WATCHDOG : 0;
    return { least: left(live), most: Math.max(left([...live, ...forced]), renewed) };
  }

  // Calls

  /** Returns the right outcome of `hold.unlock()`. */
  unlock(hold: Hold): string {
    const stack = hold.owner.stacks[hold.side];
    const index = stack.indexOf(hold);
    if (index >= 0) stack.splice(index, 1);
    hold.answer ??= this.#end(hold);
    return hold.answer;
  }

  /** Returns the right outcome of that owner's `lock.unlock()`. */
  unlockInnermost(owner: Owner, side: Side): string {
    const hold = owner.stacks[side].pop();
    if (!hold) return "NOT_OWNER";
    const answer = hold.answer ?? this.#end(hold);
    hold.answer = "NOT_OWNER";
    return answer;
  }

  /** Returns the right outcome of `hold.extend()`. */
  extend(hold: Hold, lease: number): string {
    if (hold.state === "held") this.notice(hold.owner, hold.side);
    if (hold.state === "lost" || hold.notices > 0) return "LOCK_LOST";
    if (hold.state === "ended") return hold.answer === "LOCK_LOST" ? "LOCK_LOST" : "NOT_OWNER";
    this.#setTerm(hold, hold.renewed ? Math.max(lease, WATCHDOG) : lease);
    return "ok";
  }

  /** The server no longer has these holds, for one of these reasons. */
  take(holds: readonly Hold[], ...reasons: string[]): void {
    for (const hold of holds) hold.gone = reasons;
  }

  /** Each command of an owner finds out which of its holds on that side are gone. Returns those holds. */
  notice(owner: Owner, side: Side): Hold[] {
    const gone = this.all.filter(
      (hold) => hold.owner === owner && hold.side === side && hold.state === "held" && hold.gone,
    );
    for (const hold of gone) hold.notices++;
    return gone;
  }

  /** The command that would have found that out is not sent. */
  unnotice(gone: readonly Hold[]): void {
    for (const hold of gone) hold.notices--;
  }

  close(client: number): void {
    const held = this.all.filter(({ owner, state }) => owner.client === client && state === "held");
    this.take(held, "closed");
    for (const hold of held) hold.notices++;
  }

  // Events

  add(owner: Owner, side: Side, lease: number | undefined): Hold {
    const hold: Hold = {
      owner,
      side,
      renewed: lease === undefined,
      ends: 0,
      lapses: 0,
      renewedAt: this.#now,
      state: "held",
      gone: undefined,
      notices: 0,
      answer: undefined,
    };
    this.#setTerm(hold, lease ?? WATCHDOG);
    this.all.push(hold);
    owner.stacks[side].push(hold);
    return hold;
  }

  lose(hold: Hold, reason: string): void {
    if (hold.state !== "held") throw new Violation(`lost when it was ${hold.state}`);
    const overdue = hold.ends <= this.#now && reason === "expired";
    if (!overdue && !hold.gone?.includes(reason)) throw new Violation(`lost (${reason}) without a reason`);
    hold.state = "lost";
    if (reason === "closed") hold.answer = "ok";
  }

  renew(owner: Owner): void {
    const renewed = this.liveOf(owner).filter((hold) => hold.renewed);
    if (renewed.length === 0) throw new Violation("renewed for an owner who has lost it");
    for (const hold of renewed) {
      hold.renewedAt = this.#now;
      if (this.#now + WATCHDOG > hold.lapses) this.#setTerm(hold, WATCHDOG);
    }
  }

  /** Called when nothing happens until time passes: checks that the holds have ended that must have ended. */
  rest(): void {
    for (const hold of this.all) {
      if (hold.state !== "held") continue;
      const name = this.nameOf(hold);
      if (hold.notices > 0) throw new Violation(`${name} does not know that it is gone`);
      if (hold.ends <= this.#now - MARGIN) throw new Violation(`${name} outlived its deadline`);
      const late = hold.renewedAt + WATCHDOG / 3 + MARGIN < this.#now;
      if (hold.renewed && late) throw new Violation(`${name} was neither renewed nor lost`);
    }
  }

  /** Ends a hold by an unlock; returns the outcome. */
  #end(hold: Hold): string {
    if (hold.state === "lost") return "LOCK_LOST";
    this.notice(hold.owner, hold.side);
    if (hold.gone) return "LOCK_LOST";
    hold.state = "ended";
    return "ok";
  }

  #setTerm(hold: Hold, lease: number): void {
    hold.lapses = this.#now + lease;
    hold.ends = this.#now + lease * (1 - DRIFT) - MARGIN;
  }
}
