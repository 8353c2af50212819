/** When an owner's holds on a lock are to be renewed or have ended, and what the watchdog's news mean for them. */
import { type Instant, onMono } from "../base/clock.js";
import { trace } from "../base/trace.js";
import { renewalInterval, retryInterval } from "../watchdog/pace.js";
import type { Guarded, Renewal } from "../watchdog/watchdog.js";
import type { Env } from "./env.js";
import { eventOf, type Holdings } from "./holdings.js";
import { DONE } from "./primitive.js";

export class Keeper implements Guarded {
  dueAt = 0;
  place = -1;
  readonly #env: Env;
  readonly #holdings: Holdings;
  readonly #interval: number;
  /** Monotonic milliseconds. */
  #renewAt = Number.POSITIVE_INFINITY;

  constructor(env: Env, holdings: Holdings) {
    this.#env = env;
    this.#holdings = holdings;
    this.#interval = renewalInterval(env.settings.watchdogTimeout);
  }

  /** A renewed hold was granted by a command sent at `sent`. */
  granted(sent: Instant): void {
    const next = onMono(this.#env.clock, sent) + this.#interval;
    this.#renewAt = this.#holdings.held.length > 1 ? Math.min(this.#renewAt, next) : next;
  }

  nextDue(): number {
    let next = Number.POSITIVE_INFINITY;
    const now = this.#env.clock.mono();
    for (const grant of this.#holdings) {
      if (grant.state !== "held") continue;
      next = Math.min(next, now + grant.remaining);
      if (grant.renewed && this.#holdings.renewing === 0) next = Math.min(next, this.#renewAt);
    }
    return next;
  }

  due(now: number): readonly Renewal[] {
    this.#holdings.dropExpired();
    if (this.#holdings.renewing > 0 || this.#renewAt > now) return [];
    const renewals = new Map<string, Renewal>();
    for (const { renewed, primitive, field, wireId } of this.#holdings.held) {
      if (!renewed || renewals.has(field)) continue;
      const { renewer, key } = primitive;
      const besides = primitive.besides(wireId, this.#holdings.rest(primitive).terms.length);
      renewals.set(field, { holder: this, renewer, key, field, besides });
    }
    this.#holdings.renewing = renewals.size;
    if (renewals.size > 0) this.#renewAt = Number.POSITIVE_INFINITY;
    return [...renewals.values()];
  }

  renewed(renewal: Renewal, word: number, sent: Instant): void {
    // Past its deadline it is lost, whatever the server says: after a stall answers are read before the timers speak.
    this.#holdings.dropExpired();
    this.#holdings.renewing--;
    const held = this.#holdings.held.filter(({ field }) => field === renewal.field);
    const [first] = held;
    const { settings, events, watchdog } = this.#env;
    // The holds may have been given back, or be others by now.
    if (!first) return watchdog.watch(this);
    const { side } = first.primitive;
    if (word !== DONE) return this.#holdings.loseAll(this.#holdings.absence(word, side), side);
    this.#holdings.suspended = false;
    for (const grant of held) if (grant.renewed) grant.raiseTerm(sent, settings.watchdogTimeout);
    this.#renewBy(onMono(this.#env.clock, sent) + this.#interval);
    events.emit("renewed", { ...eventOf(first.primitive), ownerId: first.wireId });
    watchdog.watch(this);
  }

  notRenewed(cause: unknown): void {
    trace("a renewal got no answer");
    this.#holdings.renewing--;
    this.#renewBy(this.#env.clock.mono() + retryInterval(this.#env.settings.watchdogTimeout));
    const [first] = this.#holdings.held;
    if (first && !this.#holdings.suspended) {
      this.#holdings.suspended = true;
      this.#env.events.emit("suspended", { ...eventOf(first.primitive), ownerId: first.wireId, cause });
    }
    this.#env.watchdog.watch(this);
  }

  /** The two sides of a read-write lock are renewed together, so the earlier time counts. */
  #renewBy(at: number): void {
    this.#renewAt = Math.min(this.#renewAt, at);
  }
}
