/** One permit with a lease: how it is taken and ended on the wire. */
import { elapsedSince, type Instant } from "../base/clock.js";
import { LockLostError } from "../base/errors.js";
import { permitId } from "../base/ids.js";
import { untilDeadline } from "../base/lease.js";
import { permitLeases, tombstone } from "../base/names.js";
import { permitsAcquire, permitsRelease } from "../scripts/generated.js";
import type { ScriptCall } from "../scripts/script.js";
import { MARKER_TTL, type SharedNumber } from "./number.js";
import { type Attempt, Request, type RequestOptions } from "./request.js";

export interface Permit {
  readonly id: string;
  readonly sent: Instant;
}

/** The keys of a call that leaves this trace: a tombstone, or a marker. */
export function keysOf(
  { key, channel }: SharedNumber,
  trace: string,
): [permits: string, leases: string, channel: string, trace: string] {
  return [key, permitLeases(key), channel, trace];
}

/** Takes one permit under an id that was not used before. */
export class TakePermit extends Request<Permit> {
  readonly #id: string = permitId();
  readonly #lease: number;

  constructor(number: SharedNumber, lease: number, options: RequestOptions<Permit>) {
    super(number, options);
    this.#lease = lease;
  }

  protected override get attempt(): ScriptCall {
    const { wanted: number } = this;
    const id = this.#id;
    const keys = keysOf(number, tombstone(number.key, id));
    return permitsAcquire.with(keys, [id, this.#lease, number.publish]);
  }

  protected override read(reply: unknown): Attempt<Permit> {
    const { clock, settings } = this.env;
    const [word, free = 0, next = -1] = (reply as unknown[]).map(Number);
    if (word !== 1) return { granted: false, ttl: next };
    const { sentAt: sent } = this;
    if (untilDeadline(this.#lease, settings.drift, elapsedSince(clock, sent)) === 0) {
      throw new LockLostError(this.lockName, "expired", clock.wall());
    }
    return { granted: true, value: { id: this.#id, sent }, remaining: free };
  }

  protected override undo(): Promise<unknown> {
    const number = this.wanted;
    return number.undo(this.#id, (id) => endPermit(number, id, number.env.wireId()));
  }
}

/** Gives a permit back, or gives it up; `call` names the call that does so. */
export function endPermit(number: SharedNumber, id: string, call: string): ScriptCall {
  const keys = keysOf(number, tombstone(number.key, id));
  return permitsRelease.with(keys, [id, call, MARKER_TTL, number.publish]);
}

/** A permit's id in lower case; undefined for a text that is no id. */
export function checkId(id: unknown): string | undefined {
  if (typeof id !== "string") throw new TypeError("permit id must be a string");
  return /^[0-9a-f]{32}$/i.test(id) ? id.toLowerCase() : undefined;
}
