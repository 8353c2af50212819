/**
 * The holds that one owner has on one lock, and how they are lost. Owns the list and the wire id; what has to happen
 * around a change (timers, waiters) is told to `changed`.
 */
import { elapsedSince, instant } from "../base/clock.js";
import type { LockLostError, LossReason } from "../base/errors.js";
import type { LockEvent } from "../base/events.js";
import { trace } from "../base/trace.js";
import { outside } from "../owners/context.js";
import type { Env, LiveHoldings } from "./env.js";
import type { Grant } from "./grant.js";
import { type Primitive, type Rest, type Side, TAKEN } from "./primitive.js";
import type { Serial } from "./serial.js";
import { noop, quietly } from "./work.js";

export function eventOf(primitive: Primitive): LockEvent {
  return { lockName: primitive.lockName, kind: primitive.kind };
}

export class Holdings implements LiveHoldings {
  /** Among the live holdings of the client. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  /** Taken by `lock()` or `tryLock()` and not given back, lost ones among them; the innermost is last. */
  readonly bare: Grant[] = [];
  /** A side that another client of this process gave back by force: the likely cause, should it be gone. */
  forced: Side | undefined;
  /** The last renewal got no answer: the likely cause, should the deadline pass. */
  suspended = false;
  /** Renewals on their way: likewise. */
  renewing = 0;
  readonly #env: Env;
  readonly #serial: Serial;
  readonly #changed: () => void;
  /** Counted by the server, as far as is known; those on their way back included. */
  #grants: Grant[] = [];
  #wireId: string | undefined;
  /** Writes the tombstones of commands that may arrive once more. */
  #doubts: (() => Promise<void>)[] = [];

  constructor(env: Env, serial: Serial, changed: () => void) {
    this.#env = env;
    this.#serial = serial;
    this.#changed = changed;
  }

  /**
   * Runs one command that changes the holds under an id of its own, `callId`. Commands before it that may arrive once
   * more (the connection was lost meanwhile, or there was no answer) get a tombstone first, which refuses them then:
   * a late one would set back the count, or cut the TTL that the hold believes in. With no hold left none is needed,
   * since the wire id is over then.
   */
  async once<T>(primitive: Primitive, callId: string, command: () => Promise<T>): Promise<T> {
    const { link, clock } = this.#env;
    for (const doubt of this.#doubts.splice(0)) await doubt();
    const wireId = this.#wireId;
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
        this.#doubts.push(() => quietly(link.limited("", primitive.undo(wireId, callId, rest))));
      }
    }
  }

  /** Releases all holds of a side but `rest`: the wire id lives on while any hold does. */
  release(primitive: Primitive, wireId: string, rest: () => Rest, onSilence: () => void): Promise<number> {
    const callId = this.#env.callId(wireId);
    const command = () => primitive.release(wireId, callId, rest, onSilence);
    return rest().left > 0 ? this.once(primitive, callId, command) : command();
  }

  get empty(): boolean {
    return this.#grants.length === 0;
  }

  /** The wire id that all holds share; undefined without one. */
  get wireId(): string | undefined {
    return this.#wireId;
  }

  /** The fencing token of the outermost hold, which nested ones share. */
  get token(): bigint | undefined {
    return this.#grants[0]?.token;
  }

  /** Holds that are neither lost nor on their way back. */
  get held(): Grant[] {
    return this.#grants.filter((grant) => grant.state === "held");
  }

  get anyHeld(): boolean {
    for (const grant of this.#grants) if (grant.state === "held") return true;
    return false;
  }

  /** In the order of their grants; those on their way back included. */
  [Symbol.iterator](): Iterator<Grant> {
    return this.#grants[Symbol.iterator]();
  }

  has(grant: Grant): boolean {
    return this.#grants.includes(grant);
  }

  add(grant: Grant): void {
    if (this.empty) {
      this.#wireId = grant.wireId;
      this.forced = undefined;
      this.suspended = false;
    }
    this.#grants.push(grant);
    if (grant.origin === "bare") this.bare.push(grant);
    this.#changed();
  }

  remove(grant: Grant): void {
    this.#keep((other) => other !== grant);
  }

  unstack(grant: Grant): void {
    const index = this.bare.lastIndexOf(grant);
    if (index >= 0) this.bare.splice(index, 1);
  }

  /** The holds but for one, as a command on this side is to leave them. */
  rest(primitive: Primitive, without?: Grant): Rest {
    return this.#terms(primitive, (grant) => (grant === without ? undefined : this.#leftOf(grant)));
  }

  /** The holds with `term` milliseconds for one of them, and no less than it has for each other. */
  extended(extended: Grant, term: number): Rest {
    return this.#terms(extended.primitive, (grant) => (grant === extended ? term : this.#leftOf(grant)));
  }

  /**
   * What a command grants a hold that it leaves. One that is renewed gets its full lease: a renewal may have been
   * executed that we have not heard of yet, and a TTL below what it will make us believe would let another in.
   */
  #leftOf({ renewed, serverLeft }: Grant): number {
    return renewed && serverLeft > 0 ? Math.max(serverLeft, this.#env.settings.watchdogTimeout) : serverLeft;
  }

  #terms(primitive: Primitive, termOf: (grant: Grant) => number | undefined): Rest {
    const terms: number[] = [];
    let left = 0;
    for (const grant of this.#grants) {
      const term = termOf(grant);
      if (term === undefined) continue;
      if (grant.primitive.side === primitive.side) terms.push(term);
      left = Math.max(left, term);
    }
    return { terms, left };
  }

  // Losing

  /** What the clock says is over is lost. */
  dropExpired(): void {
    let expired: Grant[] | undefined;
    for (const grant of this.#grants) {
      if (grant.state === "held" && grant.remaining <= 0) expired = [...(expired ?? []), grant];
    }
    if (expired) this.drop(expired, undefined);
  }

  /** Loses holds by this side's decision; what the server still has of them is given back in the background. */
  drop(grants: readonly Grant[], reason: LossReason | undefined): void {
    const wireId = this.#wireId as string;
    for (const grant of grants) {
      this.lose(
        grant,
        reason ?? (grant.renewed && (this.suspended || this.renewing > 0) ? "unreachable" : "expired"),
      );
    }
    this.#keep((grant) => grant.state !== "lost");
    for (const primitive of new Map(grants.map(({ primitive }) => [primitive.side, primitive])).values()) {
      const release = () => this.release(primitive, wireId, () => this.rest(primitive), noop);
      // With no hold left the wire id is over, and nothing need wait for its release.
      this.#env.settle(this.empty ? release() : this.#serial.run(release));
    }
  }

  /**
   * The server does not know the owner any more, on one side or on any: every live hold there is lost. Those on their
   * way back will be told so.
   */
  loseAll(reason: LossReason, side?: Side): void {
    for (const grant of this.held) {
      if (side === undefined || grant.primitive.side === side) this.lose(grant, reason);
    }
    this.#keep((grant) => grant.state !== "lost");
  }

  lose(grant: Grant, reason: LossReason): LockLostError {
    if (grant.loss) return grant.loss;
    const { held, primitive, wireId } = grant;
    const loss = grant.lose(reason);
    trace('lock "%s": lost by %s, %s', grant.lockName, wireId, reason);
    outside(() => grant.tellLoss());
    this.#env.events.emit("lost", { ...eventOf(primitive), ownerId: wireId, reason, held });
    return loss;
  }

  /** Why the server says that the owner has nothing, on a side or on any. */
  absence(word: number, side: Side | undefined): LossReason {
    if (this.forced && (side ?? this.forced) === this.forced) return "forced";
    // The key may be there on account of the owner's other side.
    const isBeside = side !== undefined && this.held.some((grant) => grant.primitive.side !== side);
    return word === TAKEN && !isBeside ? "taken" : "expired";
  }

  // What happens to the whole lock or the whole client

  wireIdOn(primitive: Primitive): string | undefined {
    const { key, side } = primitive;
    const isOn = (grant: Grant) => grant.primitive.key === key && grant.primitive.side === side;
    return this.held.some(isOn) ? this.#wireId : undefined;
  }

  loseByForce(primitive: Primitive, wireId: string): void {
    if (this.wireIdOn(primitive) === wireId) this.loseAll("forced", primitive.side);
  }

  hearOfForce(primitive: Primitive): void {
    if (this.wireIdOn(primitive) !== undefined) this.forced = primitive.side;
  }

  loseByClose(): void {
    const { held } = this;
    if (held.length > 0) this.drop(held, "closed");
  }

  #keep(wanted: (grant: Grant) => boolean): void {
    this.#grants = this.#grants.filter(wanted);
    if (this.empty) {
      this.#wireId = undefined;
      this.#doubts = [];
    }
    this.#changed();
  }
}
