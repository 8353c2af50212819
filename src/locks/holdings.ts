/**
 * The holds that one owner has on one lock, and the commands that change them. Owns the list; what has to happen around a
 * change (timers, waiters) is said by `changed`.
 */
import { elapsedSince, instant } from "../base/clock.js";
import type { Env } from "./env.js";
import type { Grant } from "./grant.js";
import type { Giving, Primitive, Rest, Side } from "./primitive.js";
import { Serial } from "./serial.js";
import { quietly } from "./work.js";

/** Asked for at each call, and nearly always so. */
const NONE: readonly Grant[] = [];

export abstract class Holdings extends Serial {
  readonly env: Env;
  /** Counted by the server, as far as is known, in the order of their grants; those on their way back included. */
  #first: Grant | undefined;
  /** Writes the tombstones of commands that may arrive once more. */
  #doubts: (() => Promise<void>)[] | undefined;

  constructor(env: Env) {
    super();
    this.env = env;
  }

  /** Holds, turns or deadlines have changed: whoever depends on them is to look again. */
  protected abstract changed(): void;

  /**
   * Runs one command that changes the holds under an id of its own, `callId`. Commands before it that may arrive once
   * more (the connection was lost meanwhile, or there was no answer) get a tombstone first, which refuses them then:
   * a late one would set back the count, or cut the TTL that the hold believes in. With no hold left none is needed,
   * since the wire id is over then.
   */
  protected async once<T>(primitive: Primitive, callId: string, command: () => Promise<T>): Promise<T> {
    const { link, clock } = this.env;
    for (const doubt of this.#doubts?.splice(0) ?? []) await doubt();
    const wireId = this.sharedId;
    const { losses } = link;
    const begun = instant(clock);
    let doubtful = true;
    try {
      const result = await command();
      doubtful = link.losses !== losses || elapsedSince(clock, begun) > link.commandTimeout;
      return result;
    } finally {
      // By the state of that moment there is nothing to undo, so this only leaves the tombstone.
      const rest = () => this.rest(primitive);
      if (doubtful && wireId !== undefined) {
        this.#doubts ??= [];
        this.#doubts.push(() => quietly(link.limited("", primitive.undo(wireId, callId, rest))));
      }
    }
  }

  /** Releases all holds of a side but the rest: the wire id lives on while any hold does. */
  protected letGo(primitive: Primitive, wireId: string, giving: Giving): Promise<number> {
    const callId = this.env.callId(wireId);
    const command = () => primitive.release(wireId, callId, giving);
    return giving.rest().left > 0 ? this.once(primitive, callId, command) : command();
  }

  protected get empty(): boolean {
    return !this.#first;
  }

  /** True with one hold, or none. */
  protected get single(): boolean {
    return !this.#first?.next;
  }

  /** The wire id that all holds share; undefined without one. */
  protected get sharedId(): string | undefined {
    return this.#first?.wireId;
  }

  protected get outermostHold(): Grant | undefined {
    return this.#first;
  }

  /** Holds that are neither lost nor on their way back. */
  protected get held(): Grant[] {
    const held: Grant[] = [];
    for (let grant = this.#first; grant; grant = grant.next) if (grant.state === "held") held.push(grant);
    return held;
  }

  /** Held ones whose time is over by the clock. */
  protected get expired(): readonly Grant[] {
    let expired = NONE;
    for (let grant = this.#first; grant; grant = grant.next) {
      if (grant.state === "held" && grant.remaining <= 0) expired = [...expired, grant];
    }
    return expired;
  }

  protected get anyHeld(): boolean {
    for (let grant = this.#first; grant; grant = grant.next) if (grant.state === "held") return true;
    return false;
  }

  /** In the order of their grants; those on their way back included. */
  *[Symbol.iterator](): Iterator<Grant> {
    for (let grant = this.#first; grant; grant = grant.next) yield grant;
  }

  protected has(grant: Grant): boolean {
    for (let other = this.#first; other; other = other.next) if (other === grant) return true;
    return false;
  }

  protected add(grant: Grant): void {
    if (this.#first) {
      let last = this.#first;
      while (last.next) last = last.next;
      last.next = grant;
      return;
    }
    this.#first = grant;
  }

  protected remove(grant: Grant): void {
    this.keep((other) => other !== grant);
  }

  /** How many holds are on a side; those on their way back included. */
  protected countOn(side: Side): number {
    let count = 0;
    for (let grant = this.#first; grant; grant = grant.next) if (grant.primitive.side === side) count++;
    return count;
  }

  /** The holds but for one, as a command on this side is to leave them. */
  protected rest(primitive: Primitive, without?: Grant): Rest {
    return this.terms(primitive, (grant) => (grant === without ? undefined : this.leftOf(grant)));
  }

  /** The holds with `term` milliseconds for one of them, and no less than it has for each other. */
  protected extended(extended: Grant, term: number): Rest {
    return this.terms(extended.primitive, (grant) => (grant === extended ? term : this.leftOf(grant)));
  }

  /**
   * What a command grants a hold that it leaves. One that is renewed gets its full lease: a renewal may have been
   * executed that we have not heard of yet, and a TTL below what it will make us believe would let another in.
   */
  private leftOf({ renewed, serverLeft }: Grant): number {
    return renewed && serverLeft > 0 ? Math.max(serverLeft, this.env.settings.watchdogTimeout) : serverLeft;
  }

  private terms(primitive: Primitive, termOf: (grant: Grant) => number | undefined): Rest {
    const terms: number[] = [];
    let left = 0;
    for (let grant = this.#first; grant; grant = grant.next) {
      const term = termOf(grant);
      if (term === undefined) continue;
      if (grant.primitive.side === primitive.side) terms.push(term);
      left = Math.max(left, term);
    }
    return { terms, left };
  }

  /** Lets go of the others. */
  protected keep(wanted: (grant: Grant) => boolean): void {
    let last: Grant | undefined;
    for (let grant = this.#first; grant; grant = grant.next) {
      if (wanted(grant)) last = grant;
      else if (last) last.next = grant.next;
      else this.#first = grant.next;
    }
    if (this.empty) this.#doubts = undefined;
    this.changed();
  }
}
