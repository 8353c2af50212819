/** One permit that was taken without a lease: when it is renewed, and when it is lost. */
import { elapsed, elapsedSince, type Instant, instant, onMono } from "../base/clock.js";
import { LockLostError, type LossReason } from "../base/errors.js";
import { renewalInterval, retryInterval, untilDeadline } from "../base/lease.js";
import type { Env } from "../env.js";
import type { TimerEntry } from "../watchdog/timer-heap.js";
import type { Renewal, Renewer } from "../watchdog/watchdog.js";
import type { SharedNumber } from "./number.js";

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

/** The permits of a client, as one of them sees them. */
export interface PermitHost {
  readonly renewer: Renewer;
  readonly watchdog: { watch(permit: KeptPermit): void };
  /** Stops looking after a permit. */
  drop(permit: KeptPermit, reason?: LossReason): void;
}

export interface KeptPermitOptions {
  readonly permits: PermitHost;
  readonly number: SharedNumber;
  readonly id: string;
  /** The key that has the leases. */
  readonly leases: string;
  /** When the command that took it was sent. */
  readonly sent: Instant;
  /** Gives back the permit, if the server still has it. */
  readonly giveBack: () => Promise<unknown>;
}

export class KeptPermit implements TimerEntry, Live {
  dueAt = 0;
  index = -1;
  readonly number: SharedNumber;
  readonly id: string;
  lost: LockLostError | undefined;
  readonly #options: KeptPermitOptions;
  readonly #env: Env;
  readonly #since: Instant;
  /** When the command was sent that gave the permit the lease below. */
  #sent: Instant;
  #lease: number;
  #renewAt: number;
  #renewing = false;
  #suspended = false;
  /** How many calls that set its lease have no answer. While there are any it is not renewed. */
  #updates = 0;
  /** The permit was given back or lost, or has a lease by now: this object does nothing more. */
  #over = false;

  constructor(options: KeptPermitOptions) {
    this.#options = options;
    this.number = options.number;
    this.id = options.id;
    this.#env = options.number.env;
    this.#since = options.sent;
    this.#sent = options.sent;
    this.#lease = this.#env.settings.watchdogTimeout;
    this.#renewAt = onMono(options.sent, instant(this.#env.clock)) + this.#interval;
  }

  /** Milliseconds since the permit was taken. */
  get held(): number {
    return elapsedSince(this.#env.clock, this.#since);
  }

  get remaining(): number {
    return this.#until(this.#sent, this.#lease);
  }

  watch(): void {
    this.#options.permits.watchdog.watch(this);
  }

  end(): void {
    this.#over = true;
    this.watch();
  }

  nextDue(): number {
    if (this.#over) return Number.POSITIVE_INFINITY;
    const deadline = this.#env.clock.mono() + this.remaining;
    return this.#renewing || this.#updates > 0 ? deadline : Math.min(deadline, this.#renewAt);
  }

  /**
   * A call that gives it this lease has begun, and resolves with whether there is such a permit. A permit with a lease
   * is not kept. As long as nobody knows whether it has one, only the earlier of the two deadlines is sure.
   */
  async update(lease: number, work: Promise<boolean>): Promise<boolean> {
    const sent = instant(this.#env.clock);
    if (this.#until(sent, lease) < this.remaining) {
      this.#sent = sent;
      this.#lease = lease;
    }
    this.#updates++;
    this.watch();
    let isSet: boolean;
    try {
      isSet = await work;
    } catch (error) {
      this.#updates--;
      // Until a renewal is answered, nobody knows which lease the permit has.
      this.#renewAt = this.#env.clock.mono();
      this.watch();
      throw error;
    }
    this.#updates--;
    if (!isSet) this.#gone();
    else if (!this.#over) this.#options.permits.drop(this);
    // A permit that was lost while there was no answer is on its way back.
    return isSet && !this.lost;
  }

  due(now: number): readonly Renewal<KeptPermit>[] {
    if (this.#expired() || this.#renewing || this.#updates > 0 || this.#renewAt > now) return [];
    this.#renewing = true;
    const { permits, leases, id } = this.#options;
    return [{ watched: this, renewer: permits.renewer, key: leases, field: id, extraKeys: [] }];
  }

  renewed(word: number, sent: Instant): void {
    this.#renewing = false;
    // After its deadline the permit is lost, whatever the server says. After a stall of this process replies are
    // handled before timers, so the deadline is checked here.
    if (this.#over || this.#expired()) return;
    if (word !== 1) return this.#gone();
    this.#suspended = false;
    this.#sent = sent;
    this.#lease = this.#env.settings.watchdogTimeout;
    this.#renewAt = onMono(sent, instant(this.#env.clock)) + this.#interval;
    this.number.emit("renewed", { permitId: this.id });
    this.watch();
  }

  notRenewed(cause: unknown): void {
    this.#renewing = false;
    if (this.#over) return;
    this.#renewAt = this.#env.clock.mono() + retryInterval(this.#env.settings.watchdogTimeout);
    if (!this.#suspended) {
      this.#suspended = true;
      this.number.emit("suspended", { permitId: this.id, cause });
    }
    this.watch();
  }

  renewedLate(sent: Instant): void {
    const now = instant(this.#env.clock);
    // A call that has set another lease since, or may have, counts for more.
    const isOutdone = this.#updates > 0 || onMono(sent, now) <= onMono(this.#sent, now);
    if (this.#over || this.#expired() || isOutdone) return;
    this.#sent = sent;
    this.#lease = this.#env.settings.watchdogTimeout;
    this.watch();
  }

  /** Ends the permit as lost after `held` milliseconds, and gives it back if the server still has it. */
  lose(reason: LossReason, held: number = this.held): void {
    if (this.#over) return;
    const since = this.#since.wall + held;
    this.lost = new LockLostError(this.number.lockName, reason, since);
    this.#options.permits.drop(this, reason);
    this.number.emit("lost", { reason, held, permitId: this.id });
    this.#env.settle(this.#options.giveBack());
  }

  /** The server does not have it any more: it was last known to be held when what it has answered was sent. */
  #gone(): void {
    this.lose("expired", elapsed(this.#since, this.#sent));
  }

  #expired(): boolean {
    if (this.#over || this.remaining > 0) return false;
    const isAwaited = this.#suspended || this.#renewing || this.#updates > 0;
    const term = untilDeadline(this.#lease, this.#env.settings.drift, 0);
    this.lose(isAwaited ? "unreachable" : "expired", elapsed(this.#since, this.#sent) + term);
    return true;
  }

  /** Milliseconds to the deadline of such a lease. */
  #until(sent: Instant, lease: number): number {
    return untilDeadline(lease, this.#env.settings.drift, elapsedSince(this.#env.clock, sent));
  }

  get #interval(): number {
    return renewalInterval(this.#env.settings.watchdogTimeout);
  }
}
