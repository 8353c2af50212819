/** One permit that was taken without a lease: the watchdog renews it until it is given back or lost. */
import { elapsed, elapsedSince, type Instant, instant } from "../base/clock.js";
import { LockLostError, type LossReason } from "../base/errors.js";
import type { LockEvent, LockEventName, LockEvents } from "../base/events.js";
import { untilDeadline } from "../base/lease.js";
import { permitLeases } from "../base/names.js";
import { permitsRenew } from "../scripts/generated.js";
import type { Leased, Renewal, RenewalScript } from "../watchdog/watchdog.js";
import type { LivePermits } from "./live-permits.js";
import type { SharedNumber } from "./number.js";
import { endPermit, type Permit } from "./permit-want.js";

const renewPermits: RenewalScript = (batch, lease) =>
  permitsRenew.with(
    batch.map(({ key }) => key),
    [lease, ...batch.map(({ field }) => field)],
  );

export class KeptPermit implements Leased {
  // Of the watchdog.
  dueAt = 0;
  index = -1;
  renewAt: number = Number.POSITIVE_INFINITY;
  renewing = 0;
  isSuspended = false;
  readonly isRenewed = true;
  /** `over`: given back or lost, or it has a lease by now. */
  state: "held" | "over" = "held";
  lost: LockLostError | undefined;
  readonly number: SharedNumber;
  readonly id: string;
  readonly #permits: LivePermits;
  readonly #since: Instant;
  /** When the command was sent that gave it its lease. */
  #sent: Instant;

  constructor(permits: LivePermits, number: SharedNumber, { id, sent }: Permit) {
    this.#permits = permits;
    this.number = number;
    this.id = id;
    this.#since = sent;
    this.#sent = sent;
    const { clock, watchdog } = number.env;
    watchdog.renewAfter(this, sent, instant(clock));
    permits.keep(this);
    watchdog.watch(this);
  }

  /** Milliseconds since the permit was taken. */
  get held(): number {
    return elapsedSince(this.number.env.clock, this.#since);
  }

  get isHeld(): boolean {
    if (this.state === "held" && this.#remaining === 0) {
      const isAwaited = this.isSuspended || this.renewing > 0;
      this.lose(isAwaited ? "unreachable" : "expired", elapsed(this.#since, this.#sent) + this.#term);
    }
    return this.state === "held";
  }

  get endsAt(): number {
    return this.number.env.clock.mono() + this.#remaining;
  }

  renewal(): Renewal {
    const key = permitLeases(this.number.key);
    return { leased: this, script: renewPermits, key, field: this.id, extraKeys: [] };
  }

  has(word: number): boolean {
    return word === 1;
  }

  raise(sent: Instant): void {
    if (sent.mono <= this.#sent.mono) return;
    this.#sent = sent;
    this.number.env.watchdog.watch(this);
  }

  tell<E extends LockEventName>(event: E, more?: Omit<LockEvents[E], keyof LockEvent>): void {
    this.number.emit(event, { permitId: this.id, ...more } as LockEvents[E]);
  }

  /** It is the watchdog's no more. */
  end(): void {
    this.state = "over";
    this.number.env.watchdog.watch(this);
    this.#permits.drop(this);
  }

  /** Ends the permit as lost after `held` milliseconds, and gives it back if the server still has it. */
  lose(reason: LossReason, held: number = this.held): void {
    if (this.state === "over") return;
    const { number, id } = this;
    this.lost = new LockLostError(number.lockName, reason, this.#since.wall + held);
    this.end();
    if (reason === "closed") this.#permits.closed(this);
    this.tell("lost", { reason, held });
    const call = number.env.wireId();
    number.env.settle(number.callUntilAnswered(() => endPermit(number, id, call)));
  }

  /** The server does not have it any more: it was last known to be held when what the server has answered was sent. */
  gone(): void {
    this.lose("expired", elapsed(this.#since, this.#sent));
  }

  /** Milliseconds to its deadline. */
  get #remaining(): number {
    return Math.max(0, this.#term - elapsedSince(this.number.env.clock, this.#sent));
  }

  /** Milliseconds from when it was taken or renewed to its deadline. */
  get #term(): number {
    const { watchdogTimeout, drift } = this.number.env.settings;
    return untilDeadline(watchdogTimeout, drift, 0);
  }
}
