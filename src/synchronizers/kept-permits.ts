/** Permits that were taken without a lease: the watchdog renews them until they are given back or lost. */
import { elapsedSince, type Instant, instant, onMono } from "../base/clock.js";
import type { LossReason } from "../base/errors.js";
import { renewalInterval, retryInterval, untilDeadline } from "../base/lease.js";
import type { Item } from "../base/list.js";
import type { Env } from "../locks/env.js";
import { LiveSet } from "../locks/live-set.js";
import { permitsRenew } from "../scripts/generated.js";
import { ScriptRenewer } from "../watchdog/script-renewer.js";
import type { TimerEntry } from "../watchdog/timer-heap.js";
import {
  type Renewal,
  type RenewalRules,
  type Renewer,
  Watchdog,
  type WatchdogOptions,
} from "../watchdog/watchdog.js";
import type { SharedNumber } from "./number.js";

/** What this client has to give back before it is closed: a kept permit, or the permits of a `run`. */
export interface Live extends Item {
  readonly number: SharedNumber;
  /** The id of a permit that has one. */
  readonly id?: string;
  /** Milliseconds since the permits were taken. */
  readonly held: number;
  /** Ends the permits as lost, and gives them back. */
  lose(reason: LossReason): void;
}

export interface KeptPermitOptions {
  readonly permits: KeptPermits;
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
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  readonly number: SharedNumber;
  readonly id: string;
  readonly #options: KeptPermitOptions;
  readonly #env: Env;
  readonly #since: Instant;
  #sent: Instant;
  #renewAt: number;
  #renewing = false;
  #suspended = false;
  #watched = false;
  /** The permit was given back or lost, or has a lease by now: this object does nothing more. */
  #over = false;

  constructor(options: KeptPermitOptions) {
    this.#options = options;
    this.number = options.number;
    this.id = options.id;
    this.#env = options.number.env;
    this.#since = options.sent;
    this.#sent = options.sent;
    this.#renewAt = onMono(options.sent, instant(this.#env.clock)) + this.#interval;
  }

  /** Milliseconds since the permit was taken. */
  get held(): number {
    return elapsedSince(this.#env.clock, this.#since);
  }

  get remaining(): number {
    const { drift, watchdogTimeout } = this.#env.settings;
    return untilDeadline(watchdogTimeout, drift, elapsedSince(this.#env.clock, this.#sent));
  }

  watch(): void {
    this.#watched = !this.#over;
    this.#options.permits.watchdog.watch(this);
  }

  /** Stops renewals until the permit is watched again. */
  unwatch(): void {
    this.#watched = false;
    this.#options.permits.watchdog.watch(this);
  }

  end(): void {
    this.#over = true;
    this.unwatch();
  }

  nextDue(): number {
    if (!this.#watched) return Number.POSITIVE_INFINITY;
    const deadline = this.#env.clock.mono() + this.remaining;
    return this.#renewing ? deadline : Math.min(deadline, this.#renewAt);
  }

  due(now: number): readonly Renewal<KeptPermit>[] {
    if (this.#expired() || this.#renewing || this.#renewAt > now) return [];
    this.#renewing = true;
    const { permits, leases, id } = this.#options;
    return [{ watched: this, renewer: permits.renewer, key: leases, field: id, extraKeys: [] }];
  }

  renewed(word: number, sent: Instant): void {
    this.#renewing = false;
    // After its deadline the permit is lost, whatever the server says. After a stall of this process replies are
    // handled before timers, so the deadline is checked here.
    if (!this.#watched || this.#expired()) return;
    if (word !== 1) return this.lose("expired");
    this.#suspended = false;
    this.#sent = sent;
    this.#renewAt = onMono(sent, instant(this.#env.clock)) + this.#interval;
    this.number.emit("renewed", { permitId: this.id });
    this.#options.permits.watchdog.watch(this);
  }

  notRenewed(cause: unknown): void {
    this.#renewing = false;
    if (!this.#watched) return;
    this.#renewAt = this.#env.clock.mono() + retryInterval(this.#env.settings.watchdogTimeout);
    if (!this.#suspended) {
      this.#suspended = true;
      this.number.emit("suspended", { permitId: this.id, cause });
    }
    this.#options.permits.watchdog.watch(this);
  }

  /** Ends the permit as lost, and gives it back if the server still has it. */
  lose(reason: LossReason): void {
    if (this.#over) return;
    this.#options.permits.drop(this, reason);
    this.number.emit("lost", { reason, held: this.held, permitId: this.id });
    this.#env.settle(this.#options.giveBack());
  }

  #expired(): boolean {
    if (!this.#watched || this.remaining > 0) return false;
    this.lose(this.#suspended || this.#renewing ? "unreachable" : "expired");
    return true;
  }

  get #interval(): number {
    return renewalInterval(this.#env.settings.watchdogTimeout);
  }
}

const RENEWAL_RULES: RenewalRules<KeptPermit> = {
  due: (permit, now) => permit.due(now),
  nextDue: (permit) => permit.nextDue(),
  renewed: ({ watched }, word, sent) => watched.renewed(word, sent),
  notRenewed: ({ watched }, cause) => watched.notRenewed(cause),
};

/** All permits of one client that it has to give back. */
export class KeptPermits {
  readonly renewer: Renewer;
  readonly watchdog: Watchdog<KeptPermit>;
  /** The kept permits, and the permits of each `run`. */
  readonly live: LiveSet<Live>;
  /** The kept permits, by {@link permitKey}; so are the two below. */
  readonly #kept = new Map<string, KeptPermit>();
  /** Permits that were lost because the client was closed, and that the close gives back. */
  readonly #closed = new Set<string>();
  /** The releases under way, of any call; each resolves with whether the permit was out. */
  readonly #returning = new Map<string, Promise<boolean>>();

  constructor(env: Env, options: WatchdogOptions) {
    this.live = new LiveSet(env.stir);
    this.watchdog = new Watchdog(options, RENEWAL_RULES);
    this.renewer = new ScriptRenewer(
      env.runner,
      env.settings.watchdogTimeout,
      permitsRenew,
      (renewals, lease) => ({
        keys: { leases: renewals.map(({ key }) => key) },
        args: { lease, ids: renewals.map(({ field }) => field) },
      }),
    );
  }

  /** Renews a permit from now on. */
  keep(permit: KeptPermit): void {
    this.#kept.set(permitKey(permit.number, permit.id), permit);
    this.live.add(permit);
    permit.watch();
  }

  /** The permit of this id, if this client looks after it. */
  get(number: SharedNumber, id: string): KeptPermit | undefined {
    return this.#kept.get(permitKey(number, id));
  }

  /** Stops looking after a permit. */
  drop(permit: KeptPermit, reason?: LossReason): void {
    const where = permitKey(permit.number, permit.id);
    permit.end();
    this.#kept.delete(where);
    if (reason === "closed") this.#closed.add(where);
    this.live.remove(permit);
  }

  /** True if the close of the client gives this permit back. */
  wasClosed(number: SharedNumber, id: string): boolean {
    return this.#closed.has(permitKey(number, id));
  }

  /** The release of this permit that is under way, if there is one. */
  returning(number: SharedNumber, id: string): Promise<boolean> | undefined {
    return this.#returning.get(permitKey(number, id));
  }

  /** Notes a release that is under way. */
  returns(number: SharedNumber, id: string, work: Promise<boolean>): void {
    const where = permitKey(number, id);
    this.#returning.set(where, work);
    const done = () => this.#returning.delete(where);
    work.then(done, done);
  }
}

/** Has the key of the semaphore in it, because a user may ask one semaphore for another's permit. */
function permitKey({ key }: SharedNumber, id: string): string {
  return `${id}${key}`;
}
