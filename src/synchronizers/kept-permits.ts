/** Permits that were taken without a lease: the watchdog renews them until they are given back, or tells that they are lost. */
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

/** Something that this client has to give back before it is closed. */
export interface Live extends Item {
  readonly number: SharedNumber;
  /** Of a permit that has one. */
  readonly id?: string;
  /** Milliseconds since it was taken. */
  readonly held: number;
  /** It ends now, before it was given back, and is given back. */
  lose(reason: LossReason): void;
}

export interface KeptPermitOptions {
  readonly permits: KeptPermits;
  readonly number: SharedNumber;
  readonly id: string;
  /** The key with the leases. */
  readonly leases: string;
  /** When the command that took it was sent. */
  readonly sent: Instant;
  /** Gives back what the server may still have of it. */
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
  /** It was given back or lost, or has a lease now: none of this object's business any more. */
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

  /** Milliseconds since it was taken. */
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

  /** No renewal follows until it is watched again. */
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
    // Past its deadline it is lost, whatever the server says: after a stall answers are read before the timers speak.
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

  /** It ended before it was given back; what is left of it with the server is given back now. */
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

/** All of one client. */
export class KeptPermits {
  readonly renewer: Renewer;
  readonly watchdog: Watchdog<KeptPermit>;
  /** Those of a `run` as well. */
  readonly live: LiveSet<Live>;
  /** By {@link permitKey}, as all that is known of a permit. */
  readonly #kept = new Map<string, KeptPermit>();
  /** Those that were given back because the client was closed. */
  readonly #closed = new Set<string>();
  /** Those that are on their way back, by any call; resolves with whether they were out. */
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

  /** Looks after a permit from now on. */
  keep(permit: KeptPermit): void {
    this.#kept.set(permitKey(permit.number, permit.id), permit);
    this.live.add(permit);
    permit.watch();
  }

  /** The permit of this id, if this client looks after it. */
  get(number: SharedNumber, id: string): KeptPermit | undefined {
    return this.#kept.get(permitKey(number, id));
  }

  /** Looks after it no more. */
  drop(permit: KeptPermit, reason?: LossReason): void {
    const where = permitKey(permit.number, permit.id);
    permit.end();
    this.#kept.delete(where);
    if (reason === "closed") this.#closed.add(where);
    this.live.remove(permit);
  }

  /** The close has given it back. */
  wasClosed(number: SharedNumber, id: string): boolean {
    return this.#closed.has(permitKey(number, id));
  }

  /** The release that is under way. */
  returning(number: SharedNumber, id: string): Promise<boolean> | undefined {
    return this.#returning.get(permitKey(number, id));
  }

  /** A release is under way. */
  returns(number: SharedNumber, id: string, work: Promise<boolean>): void {
    const where = permitKey(number, id);
    this.#returning.set(where, work);
    const done = () => this.#returning.delete(where);
    work.then(done, done);
  }
}

/** Ids are fresh, but nobody keeps users from asking one semaphore for another's permit. */
function permitKey({ key }: SharedNumber, id: string): string {
  return `${id}${key}`;
}
