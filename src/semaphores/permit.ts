/** One permit with an id and a lease: how it is taken, kept by the watchdog, and ended. */
import { checkLease } from "../base/arguments.js";
import { elapsed, type Instant, instant } from "../base/clock.js";
import { LockLostError, type LossReason } from "../base/errors.js";
import type { LockEvent, LockEventName, LockEvents } from "../base/events.js";
import { permitId } from "../base/ids.js";
import { untilDeadline } from "../base/lease.js";
import { permitLeases, tombstone } from "../base/names.js";
import { quietly } from "../base/work.js";
import { permitsAcquire, permitsRelease, permitsRenew } from "../scripts/generated.js";
import type { ScriptCall } from "../scripts/script.js";
import { Leased } from "../watchdog/leased.js";
import type { Renewal, RenewalScript } from "../watchdog/watchdog.js";
import { permitKey } from "./live-permits.js";
import { MARKER_TTL, type SharedNumber } from "./number.js";
import { type Attempt, Request } from "./request.js";

/** What a call gets; one that is kept may be lost. */
export interface Permit {
  readonly id: string;
  readonly lost?: LockLostError | undefined;
}

type PermitKeys = [permits: string, leases: string, channel: string, trace: string];

/** The keys of a call that leaves this trace: a tombstone, or a marker. */
export function keysOf({ key, channel }: SharedNumber, trace: string): PermitKeys {
  return [key, permitLeases(key), channel, trace];
}

/** A permit's id in lower case; undefined for a text that is no id. */
export function checkId(id: unknown): string | undefined {
  if (typeof id !== "string") throw new TypeError("permit id must be a string");
  return /^[0-9a-f]{32}$/i.test(id) ? id.toLowerCase() : undefined;
}

/** Ends a permit: gives it back, or gives it up. Resolves with 1 if it was out. */
export function endPermit(number: SharedNumber, id: string): Promise<number> {
  const keys = keysOf(number, tombstone(number.key, id));
  const call = number.env.wireId();
  return number.untilAnswered(() => permitsRelease.with(keys, [id, call, MARKER_TTL, number.publish]));
}

/** Takes one permit under an id that was not used before. Without a lease the watchdog keeps it. */
export class TakePermit extends Request<Permit> {
  readonly #id: string = permitId();
  readonly #lease: number | undefined;

  constructor(number: SharedNumber, lease: unknown, wait: number, signal: unknown) {
    super(number, wait, signal);
    this.#lease = checkLease(lease);
  }

  protected override get attempt(): ScriptCall {
    const { wanted: number } = this;
    const keys = keysOf(number, tombstone(number.key, this.#id));
    return permitsAcquire.with(keys, [this.#id, this.#leaseMs, number.publish]);
  }

  protected override read(reply: unknown): Attempt {
    const { clock, settings } = this.env;
    const [word, free = 0, ttl = -1] = (reply as unknown[]).map(Number);
    const isGranted = word === 1;
    const left = untilDeadline(this.#leaseMs, settings.drift, elapsed(this.sentAt, instant(clock)));
    if (isGranted && left === 0) {
      throw new LockLostError(this.lockName, "expired", clock.wall());
    }
    return { isGranted, free, ttl };
  }

  protected override accept(): Permit {
    const number = this.wanted;
    const id = this.#id;
    const lease = this.#lease;
    const permit = lease === undefined ? new KeptPermit(number, id, this.sentAt) : { id };
    const about = { waited: this.waited, nested: false, permitId: id };
    number.emit("acquired", lease === undefined ? about : { ...about, lease });
    return permit;
  }

  protected override shown({ id }: Permit): string {
    return id;
  }

  protected override undo(): Promise<void> {
    const number = this.wanted;
    return number.undo(this.#id, (id) => endPermit(number, id));
  }

  get #leaseMs(): number {
    return this.#lease ?? this.env.settings.watchdogTimeout;
  }
}

const renewPermits: RenewalScript = (batch, lease) =>
  permitsRenew.with(
    batch.map(({ key }) => key),
    [lease, ...batch.map(({ field }) => field)],
  );

/** One that was taken without a lease: the watchdog renews it until it is given back or lost. */
export class KeptPermit extends Leased implements Permit {
  readonly isRenewed = true;
  lost: LockLostError | undefined;
  readonly number: SharedNumber;
  readonly id: string;
  /** Epoch milliseconds at which it was asked for. */
  readonly #since: number;

  constructor(number: SharedNumber, id: string, sent: Instant) {
    super(number.env);
    this.number = number;
    this.id = id;
    this.#since = sent.wall;
    const { clock, settings, watchdog } = number.env;
    this.raise(sent, settings.watchdogTimeout);
    watchdog.renewAfter(this, sent, instant(clock));
    number.env.permits.live.add(this, permitKey(number, id));
    watchdog.watch(this);
  }

  /** Milliseconds since the permit was taken. */
  get held(): number {
    return this.clock.wall() - this.#since;
  }

  renewal(): Renewal {
    const key = permitLeases(this.number.key);
    return { leased: this, script: renewPermits, key, field: this.id, extraKeys: [] };
  }

  tell<E extends LockEventName>(event: E, more?: Omit<LockEvents[E], keyof LockEvent>): void {
    this.number.emit(event, { permitId: this.id, ...more } as LockEvents[E]);
  }

  /** It is the watchdog's no more: given back or lost, or it has a lease by now. */
  end(): void {
    this.state = "over";
    this.env.watchdog.watch(this);
    this.env.permits.live.remove(this, permitKey(this.number, this.id));
  }

  /** Ends the permit as lost, and gives it back if the server still has it. */
  lose(reason: LossReason, since: number = this.clock.wall()): void {
    if (this.state === "over") return;
    const { number, id } = this;
    this.lost = new LockLostError(number.lockName, reason, since);
    this.end();
    if (reason === "closed") number.env.permits.returns(number, id, Promise.resolve(true));
    this.tell("lost", { reason, held: since - this.#since });
    void quietly(endPermit(number, id));
  }

  gone(): void {
    this.lose("expired", this.knownAt);
  }
}
