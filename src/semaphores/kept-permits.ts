/** Permits that were taken without a lease: the watchdog renews them until they are given back or lost. */
import type { LossReason } from "../base/errors.js";
import type { LiveSet } from "../base/live-set.js";
import type { Env } from "../env.js";
import { permitsRenew } from "../scripts/generated.js";
import { ScriptRenewer } from "../watchdog/script-renewer.js";
import { type RenewalRules, type Renewer, Watchdog, type WatchdogOptions } from "../watchdog/watchdog.js";
import type { KeptPermit, Live } from "./kept-permit.js";
import type { SharedNumber } from "./number.js";

const RENEWAL_RULES: RenewalRules<KeptPermit> = {
  due: (permit, now) => permit.due(now),
  nextDue: (permit) => permit.nextDue(),
  renewed: ({ watched }, word, sent) => watched.renewed(word, sent),
  notRenewed: ({ watched }, cause) => watched.notRenewed(cause),
  renewedLate: ({ watched }, sent) => watched.renewedLate(sent),
};

/** All permits of one client that it has to give back. */
export class KeptPermits {
  readonly renewer: Renewer;
  readonly watchdog: Watchdog<KeptPermit>;
  /** The kept permits, and the permits of each `run`. */
  readonly live: LiveSet<Live>;
  /** The kept permits, by {@link permitKey}. */
  readonly #kept = new Map<string, KeptPermit>();
  /** The releases under way, by the same; each resolves with whether the permit was out. */
  readonly #returning = new Map<string, Promise<boolean>>();

  constructor(env: Env, options: WatchdogOptions) {
    this.live = env.liveSet();
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
    this.watchdog.watch(permit);
  }

  /** The permit of this id, if this client looks after it. */
  get(number: SharedNumber, id: string): KeptPermit | undefined {
    return this.#kept.get(permitKey(number, id));
  }

  drop(permit: KeptPermit, reason?: LossReason): void {
    const where = permitKey(permit.number, permit.id);
    permit.end();
    this.#kept.delete(where);
    // The close gives it back.
    if (reason === "closed") this.#returning.set(where, Promise.resolve(true));
    this.live.remove(permit);
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
