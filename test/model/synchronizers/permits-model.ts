/** A model of the PermitExpirableSemaphore (contract section 5). */
import { Violation } from "../parties.js";
import { WATCHDOG } from "../world.js";
import { type Call, Calls } from "./calls.js";

/** How exact timers are: milliseconds. */
const MARGIN = 2;

export interface PermitCall extends Call {
  /** Milliseconds; undefined for a permit that the watchdog keeps. */
  readonly lease: number | undefined;
}

export interface Permit {
  readonly id: string;
  /** Who was granted it. */
  readonly client: number;
  /** The watchdog keeps it. */
  kept: boolean;
  /** When it lapses on the server, as far as it is known. */
  expires: number;
  state: "held" | "released" | "gone";
  /** It is gone and its keeper has to know from then on. */
  knownBy: number;
  announced: boolean;
  /** Who gave it back since the last rest. */
  releasing: number | undefined;
}

export class PermitsModel extends Calls<PermitCall> {
  readonly permits: Permit[] = [];
  /** Free ones, less than none after a cut; undefined while nobody has set any. */
  #free: number | undefined;

  override get moments(): number[] {
    const held = this.held;
    // From its own deadline to the server's nobody can tell what a keeper that was away does.
    const unknown = (expires: number) => [expires - WATCHDOG / 100, expires - WATCHDOG / 200, expires];
    const ends = held.flatMap(({ expires, kept }) => (kept ? unknown(expires) : [expires]));
    const renewals = held.flatMap(({ expires, kept }) => (kept ? [expires - (WATCHDOG * 2) / 3] : []));
    const known = this.permits.filter(({ announced }) => !announced).map(({ knownBy }) => knownBy);
    return [...super.moments, ...ends, ...renewals, ...known];
  }

  /** Those that have not ended, those that have just lapsed included. */
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

  /** Tells what lapsed by now, or has `early` ms to go. A client that is not late keeps its permits in time. */
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
    // Somebody's lease has just ended, by the server's word.
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

  /** True if it can be given back. */
  release(permit: Permit, by: number): boolean {
    if (!this.live.includes(permit)) {
      // That it is lost is announced now, if it was not before.
      permit.knownBy = Math.min(permit.knownBy, this.now);
      return false;
    }
    this.#end(permit, "released", this.now);
    permit.releasing = by;
    this.#free = (this.#free ?? 0) + 1;
    return true;
  }

  /** True if its lease can be changed. The watchdog keeps it no more. */
  update(permit: Permit, lease: number): boolean {
    if (!this.live.includes(permit)) return false;
    const expires = this.now + lease;
    // Nobody who waits is told of an earlier end.
    if (expires < permit.expires) this.quiet(expires);
    permit.expires = expires;
    permit.kept = false;
    return true;
  }

  /** The permits of a client that is closed, and that it has kept, are given back. */
  close(client: number): void {
    for (const permit of this.live) {
      if (permit.client !== client || !permit.kept) continue;
      this.#end(permit, "gone", this.now);
      this.#free = (this.#free ?? 0) + 1;
    }
  }

  /** The server shows what is left of a permit that is kept. */
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
