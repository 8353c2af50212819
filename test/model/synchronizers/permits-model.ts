/** A model of the PermitExpirableSemaphore (contract section 5). */
import { Violation } from "../parties.js";
import { WATCHDOG } from "../world.js";
import { type Call, Calls } from "./calls.js";

/** The precision of timers, in milliseconds. */
const MARGIN = 2;

export interface PermitCall extends Call {
  /** Milliseconds; undefined for a permit that the watchdog keeps. */
  readonly lease: number | undefined;
}

export interface Permit {
  readonly id: string;
  /** The client that was granted the permit. */
  readonly client: number;
  /** Whether the watchdog keeps the permit. */
  kept: boolean;
  /** When the permit expires on the server, as far as that is known. */
  expires: number;
  state: "held" | "released" | "gone";
  /** If the permit is gone: the moment from which its keeper must know. */
  knownBy: number;
  announced: boolean;
  /** The client that has given it back since the last rest. */
  releasing: number | undefined;
}

export class PermitsModel extends Calls<PermitCall> {
  readonly permits: Permit[] = [];
  /** The number of free permits, negative after a cut; undefined while none were set. */
  #free: number | undefined;

  override get moments(): number[] {
    const held = this.held;
    // Between its own deadline and the server's, a keeper that was away may or may not act.
    const unknown = (expires: number) => [expires - WATCHDOG / 100, expires - WATCHDOG / 200, expires];
    const ends = held.flatMap(({ expires, kept }) => (kept ? unknown(expires) : [expires]));
    const renewals = held.flatMap(({ expires, kept }) => (kept ? [expires - (WATCHDOG * 2) / 3] : []));
    const known = this.permits.filter(({ announced }) => !announced).map(({ knownBy }) => knownBy);
    return [...super.moments, ...ends, ...renewals, ...known];
  }

  /** The permits that have not ended, with those that have just expired. */
  get held(): Permit[] {
    return this.permits.filter(({ state }) => state === "held");
  }

  get live(): Permit[] {
    this.lapse();
    return this.held;
  }

  get free(): number | undefined {
    this.lapse();
    return this.#free;
  }

  /**
   * Ends the permits that have expired, or have at most `early` ms left. A client that is not late keeps its permits in
   * time.
   */
  lapse(early = 0): void {
    for (const permit of this.held) {
      if (permit.expires > this.now + early || (permit.kept && permit.client !== this.late)) continue;
      this.#end(permit, "gone", permit.expires);
      this.#free = (this.#free ?? 0) + 1;
    }
  }

  trySet(permits: number): boolean {
    if (this.free !== undefined) return false;
    this.#free = permits;
    return true;
  }

  set(permits: number): void {
    const { live } = this;
    this.#free = this.#free === undefined ? permits : permits - live.length;
  }

  add(permits: number): void {
    this.#free = (this.free ?? 0) + permits;
  }

  vanish(): void {
    for (const permit of this.live) this.#end(permit, "gone", this.now + WATCHDOG / 3 + MARGIN);
    this.#free = undefined;
  }

  grant(call: PermitCall, id: string): void {
    // The server may have seen another permit's lease end just now.
    if (!this.has()) this.lapse(this.slack);
    this.granted(call);
    if (!/^[0-9a-f]{32}$/.test(id)) throw new Violation(`${id} is no permit id`);
    if (this.permits.some((permit) => permit.id === id)) throw new Violation(`${id} is given out again`);
    const { client, lease } = call;
    const expires = this.now + (lease ?? WATCHDOG);
    const kept = lease === undefined;
    this.permits.push({
      id,
      client,
      kept,
      expires,
      state: "held",
      knownBy: 0,
      announced: true,
      releasing: undefined,
    });
    this.#free = (this.#free ?? 0) - 1;
  }

  /** True if the permit can be given back. */
  release(permit: Permit, by: number): boolean {
    if (!this.live.includes(permit)) {
      // If its loss was not reported before, it is reported now.
      permit.knownBy = Math.min(permit.knownBy, this.now);
      return false;
    }
    this.#end(permit, "released", this.now);
    permit.releasing = by;
    this.#free = (this.#free ?? 0) + 1;
    return true;
  }

  /** True if its lease can be changed. The watchdog then no longer keeps the permit. */
  update(permit: Permit, lease: number): boolean {
    if (!this.live.includes(permit)) return false;
    const expires = this.now + lease;
    // No message tells waiters of an earlier end.
    if (expires < permit.expires) this.quiet(expires);
    permit.expires = expires;
    permit.kept = false;
    return true;
  }

  /** Gives back the permits that a closed client has kept. */
  close(client: number): void {
    for (const permit of this.live) {
      if (permit.client !== client || !permit.kept) continue;
      this.#end(permit, "gone", this.now);
      this.#free = (this.#free ?? 0) + 1;
    }
  }

  /** The server shows the remaining time of a permit that is kept. */
  adopt(permit: Permit, left: number): void {
    permit.expires = this.now + left;
  }

  lost(id: string): void {
    this.lapse();
    const permit = this.permits.find((each) => each.id === id);
    if (!permit?.kept || permit.announced)
      throw new Violation(`${id} was announced as lost without a reason`);
    permit.announced = true;
  }

  override rest(): void {
    this.lapse();
    super.rest();
    for (const permit of this.permits) {
      permit.releasing = undefined;
      const { id, announced, knownBy } = permit;
      if (!announced && knownBy <= this.now) throw new Violation(`the loss of ${id} was not announced`);
    }
  }

  protected has(): boolean {
    return (this.free ?? 0) > 0;
  }

  protected holdsUp(): boolean {
    return false;
  }

  #end(permit: Permit, state: "released" | "gone", knownBy: number): void {
    permit.state = state;
    permit.knownBy = knownBy;
    permit.announced = !permit.kept || state === "released";
  }
}
