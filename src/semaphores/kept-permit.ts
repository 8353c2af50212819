/** One permit that was taken without a lease: when it is renewed, and when it is lost. */
import { elapsed, elapsedSince, type Instant, instant, onMono } from "../base/clock.js";
import { LockLostError, type LossReason } from "../base/errors.js";
import { renewalInterval, retryInterval, untilDeadline } from "../base/lease.js";
import { permitLeases } from "../base/names.js";
import type { Env } from "../env.js";
import type { TimerEntry } from "../watchdog/timer-heap.js";
import type { Renewal } from "../watchdog/watchdog.js";
import type { KeptPermits } from "./kept-permits.js";
import type { SharedNumber } from "./number.js";

const NEVER = Number.POSITIVE_INFINITY;

/** What this client has to give back before it is closed: a kept permit, or the permits of a `run`. */
export interface Live {
  readonly number: SharedNumber;
  /** The id of a permit that has one. */
  readonly id?: string;
  /** Milliseconds since the permits were taken. */
  readonly held: number;
  /** Ends the permits as lost, and gives them back. */
  lose(reason: LossReason): void;
}

export class KeptPermit implements TimerEntry, Live {
  dueAt = 0;
  index = -1;
  readonly number: SharedNumber;
  readonly id: string;
  lost: LockLostError | undefined;
  readonly #permits: KeptPermits;
  /** Gives it back, if the server still has it. */
  readonly #giveBack: () => Promise<unknown>;
  readonly #env: Env;
  readonly #since: Instant;
  /** When the command was sent that gave it its lease. */
  #sent: Instant;
  /** Monotonic milliseconds; Infinity while a renewal is on its way. */
  #renewAt = 0;
  #isSuspended = false;
  /** It was given back or lost, or has a lease by now: this object does nothing more. */
  #isOver = false;

  /** `sent`: when the command that took it was sent. */
  constructor(
    permits: KeptPermits,
    number: SharedNumber,
    id: string,
    sent: Instant,
    giveBack: () => Promise<unknown>,
  ) {
    this.#permits = permits;
    this.number = number;
    this.id = id;
    this.#giveBack = giveBack;
    this.#env = number.env;
    this.#since = sent;
    this.#sent = sent;
    this.#granted(sent);
  }

  /** Milliseconds since the permit was taken. */
  get held(): number {
    return elapsedSince(this.#env.clock, this.#since);
  }

  end(): void {
    this.#isOver = true;
    this.#permits.watchdog.watch(this);
  }

  nextDue(): number {
    if (this.#isOver) return NEVER;
    return Math.min(this.#env.clock.mono() + this.#remaining, this.#renewAt);
  }

  due(now: number): Renewal<KeptPermit> | undefined {
    if (this.#hasExpired() || this.#renewAt > now) return undefined;
    this.#renewAt = NEVER;
    const { renewer } = this.#permits;
    return { watched: this, renewer, key: permitLeases(this.number.key), field: this.id, extraKeys: [] };
  }

  renewed(word: number, sent: Instant): void {
    // After its deadline the permit is lost, whatever the server says. After a stall of this process replies are
    // handled before timers, so the deadline is checked here.
    if (this.#hasExpired()) return;
    if (word !== 1) return this.gone();
    this.#isSuspended = false;
    this.#granted(sent);
    this.number.emit("renewed", { permitId: this.id });
    this.#permits.watchdog.watch(this);
  }

  notRenewed(cause: unknown): void {
    if (this.#isOver) return;
    this.#renewAt = this.#env.clock.mono() + retryInterval(this.#lease);
    if (!this.#isSuspended) {
      this.#isSuspended = true;
      this.number.emit("suspended", { permitId: this.id, cause });
    }
    this.#permits.watchdog.watch(this);
  }

  renewedLate(sent: Instant): void {
    if (this.#hasExpired() || sent.mono <= this.#sent.mono) return;
    this.#sent = sent;
    this.#permits.watchdog.watch(this);
  }

  /** Ends the permit as lost after `held` milliseconds, and gives it back if the server still has it. */
  lose(reason: LossReason, held: number = this.held): void {
    if (this.#isOver) return;
    this.lost = new LockLostError(this.number.lockName, reason, this.#since.wall + held);
    this.#permits.drop(this, reason);
    this.number.emit("lost", { reason, held, permitId: this.id });
    this.#env.settle(this.#giveBack());
  }

  /** The server does not have it any more: it was last known to be held when what the server has answered was sent. */
  gone(): void {
    this.lose("expired", elapsed(this.#since, this.#sent));
  }

  /** A command that was sent at `sent` has taken or renewed it. */
  #granted(sent: Instant): void {
    this.#sent = sent;
    this.#renewAt = onMono(sent, instant(this.#env.clock)) + renewalInterval(this.#lease);
  }

  /** Whether it is over; loses it if its deadline has passed. */
  #hasExpired(): boolean {
    if (!this.#isOver && this.#remaining === 0) {
      const isAwaited = this.#isSuspended || this.#renewAt === NEVER;
      const term = untilDeadline(this.#lease, this.#env.settings.drift, 0);
      this.lose(isAwaited ? "unreachable" : "expired", elapsed(this.#since, this.#sent) + term);
    }
    return this.#isOver;
  }

  /** Milliseconds to its deadline. */
  get #remaining(): number {
    const { clock, settings } = this.#env;
    return untilDeadline(this.#lease, settings.drift, elapsedSince(clock, this.#sent));
  }

  get #lease(): number {
    return this.#env.settings.watchdogTimeout;
  }
}
