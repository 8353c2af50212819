/**
 * The oracle of holds: which owner has which of them until when, and how each ends. They change when a call is made, not
 * when it is answered: from `unlock()` on, others may be granted.
 *
 * The contract gives an owner one deadline, however many holds. The library also has a deadline of each hold, and an
 * unlock may lower the TTL to that of the longest hold left. The oracle holds for both: it knows both deadlines, takes
 * any TTL between them, and asks a schedule to give back a hold before time tells them apart (`parting`).
 */
import type { Hold as RealHold, Owner as RealOwner } from "../../../src/index.js";
import { type Call, WATCHDOG } from "./course.js";

export type Side = "only" | "read" | "write";

const DRIFT = 0.01;
/** Milliseconds that are taken off each local deadline, too. */
const MARGIN = 2;

export interface Owner {
  readonly client: number;
  /** Undefined for the owner of a bare call. */
  readonly real: RealOwner | undefined;
  /** The holds of `lock()` and `tryLock()` that `unlock()` gives back; the innermost is last. */
  readonly stacks: Readonly<Record<Side, Hold[]>>;
  /** The latest deadline here and on the server, of all that the owner has been granted. */
  ends: number;
  lapses: number;
  /** When a hold without a lease was last granted or renewed. */
  renewed: number;
}

export interface Hold {
  readonly owner: Owner;
  readonly side: Side;
  readonly real: RealHold;
  readonly isRenewed: boolean;
  /** Its own deadlines. A hold that is renewed lasts as long as its owner's. */
  ends: number;
  lapses: number;
  state: "held" | "ended" | "lost";
  /** Set when the server has it no more, which its owner need not know yet: the reasons that are right. */
  gone: readonly string[] | undefined;
  /** Whether the owner has sent a command whose answer tells that. */
  isTold: boolean;
  /** The outcome of its `unlock()` from now on; undefined while that depends on its state. */
  answer: string | undefined;
}

/** A call that wants a hold. */
export interface Ask extends Call {
  readonly owner: Owner;
  readonly side: Side;
  /** Milliseconds; absent for a hold that the watchdog renews. */
  readonly lease: number | undefined;
  /** Whether its owner has only read holds, and asks for the write side. */
  readonly isUpgrade: boolean;
}

export function newOwner(client: number, real?: RealOwner): Owner {
  const stacks = { only: [], read: [], write: [] };
  return { client, real, stacks, ends: 0, lapses: 0, renewed: 0 };
}

interface Judge {
  readonly now: number;
  /** How imprecise a time may be, in milliseconds. */
  readonly slack: number;
  fail(text: string): void;
}

export class Holds {
  readonly all: Hold[] = [];
  readonly #course: Judge;

  constructor(course: Judge) {
    this.#course = course;
  }

  get #now(): number {
    return this.#course.now;
  }

  #fail(text: string): void {
    this.#course.fail(text);
  }

  /** The holds that have not ended, as far as their owners know. */
  get held(): Hold[] {
    return this.all.filter(({ state }) => state === "held");
  }

  /** The holds that the server has. */
  get live(): Hold[] {
    return this.held.filter((hold) => !hold.gone && this.endOf(hold) > this.#now);
  }

  of(owner: Owner, holds: readonly Hold[] = this.live): Hold[] {
    return holds.filter((hold) => hold.owner === owner);
  }

  nameOf(hold: Hold): string {
    return `hold ${this.all.indexOf(hold)}`;
  }

  /** When it ends here at the earliest. */
  endOf({ isRenewed, ends, owner }: Hold): number {
    return isRenewed ? owner.ends : ends;
  }

  /** The values that the TTL of the lock may have. */
  ttl(): { readonly least: number; readonly most: number } {
    const { live } = this;
    if (live.length === 0) return { least: -2, most: -2 };
    const least = live.map(({ isRenewed, lapses, owner }) => (isRenewed ? owner.renewed + WATCHDOG : lapses));
    // Any command of an owner may renew what it has.
    const most = live.map(({ isRenewed, owner }) =>
      Math.max(owner.lapses, isRenewed ? this.#now + WATCHDOG : 0),
    );
    return { least: Math.max(...least) - this.#now, most: Math.max(...most) - this.#now };
  }

  /** The holds whose own deadline comes before `end`, while their owner's comes later. */
  parting(end: number): Hold[] {
    return this.live.filter(({ isRenewed, ends, owner }) => {
      const lasts = this.of(owner).some((other) => other.isRenewed) ? Number.POSITIVE_INFINITY : owner.lapses;
      return !isRenewed && ends <= end && lasts > end;
    });
  }

  // Calls

  /** The right outcome of `hold.unlock()`. */
  unlock(hold: Hold): string {
    const stack = hold.owner.stacks[hold.side];
    const place = stack.indexOf(hold);
    if (place >= 0) stack.splice(place, 1);
    hold.answer ??= this.#end(hold);
    return hold.answer;
  }

  /** The right outcome of `hold.extend()`; undefined if the two readings of the contract differ on it. */
  extend(hold: Hold, lease: number): string | undefined {
    const { owner, isRenewed } = hold;
    if (hold.state === "held" && hold.gone) this.tell(owner, hold.side);
    if (hold.state === "lost" || hold.gone) return "LOCK_LOST";
    if (hold.state === "ended") return hold.answer === "LOCK_LOST" ? "LOCK_LOST" : "NOT_OWNER";
    const longer = isRenewed ? Math.max(lease, WATCHDOG) : lease;
    const ends = this.#now + longer * (1 - DRIFT) - MARGIN;
    if (ends < owner.ends && this.of(owner, this.held).length > 1) return undefined;
    this.#setTerm(hold, longer);
    // Earlier than before: the deadline moves here only.
    owner.ends = ends;
    if (isRenewed) owner.renewed = this.#now;
    return "ok";
  }

  /** The server has these no more. */
  take(holds: readonly Hold[], reasons: (hold: Hold) => readonly string[]): void {
    for (const hold of holds) hold.gone = reasons(hold);
  }

  /** The owner sends a command: its answer tells which holds are gone, at least on this side. */
  tell(owner: Owner, side: Side): void {
    for (const hold of this.of(owner, this.held))
      hold.isTold ||= hold.gone !== undefined && hold.side === side;
  }

  // Events

  add({ owner, side, lease }: Ask, real: RealHold): Hold {
    if (this.of(owner).length === 0) Object.assign(owner, { ends: 0, lapses: 0, renewed: 0 });
    const isRenewed = lease === undefined;
    const state = "held" as const;
    const hold: Hold = {
      ...{ owner, side, real, isRenewed, state },
      ...{ ends: 0, lapses: 0, gone: undefined, isTold: false, answer: undefined },
    };
    this.#setTerm(hold, lease ?? WATCHDOG);
    if (isRenewed) owner.renewed = this.#now;
    this.all.push(hold);
    owner.stacks[side].push(hold);
    return hold;
  }

  lose(hold: Hold, reason: string): void {
    const isOver = this.endOf(hold) <= this.#now + this.#course.slack && reason === "expired";
    if (hold.state !== "held") this.#fail(`${this.nameOf(hold)} is lost when it was ${hold.state}`);
    else if (!isOver && !hold.gone?.includes(reason))
      this.#fail(`${this.nameOf(hold)} is lost (${reason}) without a reason`);
    hold.state = "lost";
    if (reason === "closed") hold.answer = "ok";
  }

  renew(owner: Owner): void {
    if (!this.of(owner).some(({ isRenewed }) => isRenewed)) return this.#fail("a lost hold is renewed");
    owner.renewed = this.#now;
    for (const hold of this.of(owner))
      if (hold.isRenewed && hold.lapses < this.#now + WATCHDOG) this.#setTerm(hold, WATCHDOG);
  }

  /** Called when nothing happens until time passes. */
  rest(): void {
    for (const hold of this.held) {
      const name = this.nameOf(hold);
      if (hold.isTold) this.#fail(`the owner of ${name} does not know that it is gone`);
      if (this.endOf(hold) <= this.#now - MARGIN) this.#fail(`${name} outlives its deadline`);
      const isKept = hold.owner.lapses - this.#now >= (2 / 3) * WATCHDOG - MARGIN;
      if (hold.isRenewed && !hold.gone && !isKept) this.#fail(`${name} is not renewed`);
    }
  }

  /** Ends a hold by an unlock; returns the outcome. */
  #end(hold: Hold): string {
    if (hold.state === "lost") return "LOCK_LOST";
    this.tell(hold.owner, hold.side);
    if (hold.gone) return "LOCK_LOST";
    hold.state = "ended";
    return "ok";
  }

  #setTerm(hold: Hold, lease: number): void {
    const { owner } = hold;
    hold.lapses = this.#now + lease;
    hold.ends = this.#now + lease * (1 - DRIFT) - MARGIN;
    owner.lapses = Math.max(owner.lapses, hold.lapses);
    owner.ends = Math.max(owner.ends, hold.ends);
  }
}
