/**
 * The oracle of holds: which owner has which of them until when, and how each ends. They change when a call is made, not
 * when it is answered: from `unlock()` on, others may be granted. An owner has one deadline, however many holds.
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
  /** Its deadline here and on the server. */
  ends: number;
  lapses: number;
  /** A nested call that was given up may have been executed: when it would end on the server, and on which sides it may show. */
  mayLapse: number;
  readonly strays: Set<Side>;
  /** When a hold without a lease was last granted or renewed. */
  renewed: number;
}

export interface Hold {
  readonly owner: Owner;
  readonly side: Side;
  readonly real: RealHold;
  readonly isRenewed: boolean;
  state: "held" | "ended" | "lost";
  /** Set when the server has it no more, which its owner need not know yet: the reasons that are right. */
  gone: readonly string[] | undefined;
  /** Whether the owner has sent a command whose answer tells that. */
  isTold: boolean;
  /** The outcome of its `unlock()` from now on; undefined while that depends on its state. */
  answer: string | undefined;
}

export function newOwner(client: number, real?: RealOwner): Owner {
  const stacks = { only: [], read: [], write: [] };
  return { client, real, stacks, ends: 0, lapses: 0, mayLapse: 0, strays: new Set(), renewed: 0 };
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
    return this.held.filter((hold) => !hold.gone && hold.owner.ends > this.#now);
  }

  of(owner: Owner, holds: readonly Hold[] = this.live): Hold[] {
    return holds.filter((hold) => hold.owner === owner);
  }

  nameOf(hold: Hold): string {
    return `hold ${this.all.indexOf(hold)}`;
  }

  /** The values that the TTL of the lock may have. */
  ttl(): { readonly least: number; readonly most: number } {
    const { live } = this;
    if (live.length === 0) return { least: -2, most: -2 };
    const least = Math.max(...live.map(({ owner }) => owner.lapses));
    const most = Math.max(least, ...live.map(({ owner }) => owner.mayLapse));
    return { least: least - this.#now, most: most - this.#now };
  }

  /** Whether the server may show a nested call that was given up, on this side or any. */
  mayStray(side?: Side): boolean {
    return this.live.some(({ owner }) => (side ? owner.strays.has(side) : owner.strays.size > 0));
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

  /** The right outcome of `hold.extend()`; undefined if it is a question of a millisecond. */
  extend(hold: Hold, lease: number): string | undefined {
    const { owner } = hold;
    if (hold.state === "lost") return "LOCK_LOST";
    if (hold.state === "ended") return hold.answer === "LOCK_LOST" ? "LOCK_LOST" : "NOT_OWNER";
    const isRenewed = this.of(owner, this.held).some((each) => each.isRenewed);
    const longer = isRenewed ? Math.max(lease, WATCHDOG) : lease;
    const ends = this.#now + longer * (1 - DRIFT) - MARGIN;
    if (Math.abs(ends - owner.ends) <= 1) return undefined;
    if (ends > owner.ends) {
      this.tell(owner, hold.side);
      if (hold.gone) return "LOCK_LOST";
      owner.strays.clear();
      this.#raise(owner, longer);
    }
    // Earlier than before: the deadline moves here only, and no command tells of a loss.
    owner.ends = ends;
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

  /** A nested call is given up before its answer. */
  stray({ owner, side, lease }: Call): void {
    owner.mayLapse = Math.max(owner.mayLapse, this.#now + (lease ?? WATCHDOG));
    owner.strays.add(side);
  }

  // Events

  add({ owner, side, lease }: Call, real: RealHold): Hold {
    if (this.of(owner).length === 0) Object.assign(owner, { ends: 0, lapses: 0, mayLapse: 0, renewed: 0 });
    owner.strays.clear();
    const isRenewed = lease === undefined;
    const state = "held" as const;
    const hold: Hold = {
      ...{ owner, side, real, isRenewed, state },
      ...{ gone: undefined, isTold: false, answer: undefined },
    };
    this.#raise(owner, lease ?? WATCHDOG);
    if (isRenewed) owner.renewed = this.#now;
    this.all.push(hold);
    owner.stacks[side].push(hold);
    return hold;
  }

  lose(hold: Hold, reason: string): void {
    const isOver = hold.owner.ends <= this.#now + this.#course.slack && reason === "expired";
    if (hold.state !== "held") this.#fail(`${this.nameOf(hold)} is lost when it was ${hold.state}`);
    else if (!isOver && !hold.gone?.includes(reason))
      this.#fail(`${this.nameOf(hold)} is lost (${reason}) without a reason`);
    hold.state = "lost";
    if (reason === "closed") hold.answer = "ok";
  }

  renew(owner: Owner): void {
    if (!this.of(owner).some(({ isRenewed }) => isRenewed)) return this.#fail("a lost hold is renewed");
    owner.renewed = this.#now;
    this.#raise(owner, WATCHDOG);
  }

  /** Called when nothing happens until time passes. */
  rest(): void {
    for (const hold of this.held) {
      const name = this.nameOf(hold);
      if (hold.isTold) this.#fail(`the owner of ${name} does not know that it is gone`);
      if (hold.owner.ends <= this.#now - MARGIN) this.#fail(`${name} outlives its deadline`);
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
    hold.owner.strays.clear();
    return "ok";
  }

  #raise(owner: Owner, lease: number): void {
    owner.lapses = Math.max(owner.lapses, this.#now + lease);
    owner.ends = Math.max(owner.ends, this.#now + lease * (1 - DRIFT) - MARGIN);
  }
}
