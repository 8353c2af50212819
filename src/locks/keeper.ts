/** When an owner's holds on a lock are to be renewed or have ended, and what the watchdog's news mean for them. */
import { type Instant, onMono } from "../base/clock.js";
import { trace } from "../base/trace.js";
import { renewalInterval, retryInterval } from "../watchdog/pace.js";
import type { Guarded, Renewal } from "../watchdog/watchdog.js";
import type { Grant } from "./grant.js";
import { Losses } from "./losses.js";
import { DONE, eventOf } from "./primitive.js";

/** No time at all: a small number, since Infinity would cost each record a boxed one. */
const NEVER = -1;
const NOTHING: readonly Renewal[] = [];

export abstract class Keeper extends Losses implements Guarded {
  dueAt = 0;
  place = -1;
  /** Monotonic milliseconds, rounded down; {@link NEVER} while none is due. */
  #renewAt = NEVER;

  /** A renewed hold was granted by a command sent at `sent`. */
  granted(sent: Instant): void {
    if (this.single) this.#renewAt = NEVER;
    this.renewBy(onMono(this.env.clock, sent) + this.interval);
  }

  nextDue(): number {
    let next = Number.POSITIVE_INFINITY;
    const now = this.env.clock.mono();
    for (let grant = this.outermostHold; grant; grant = grant.next) {
      if (grant.state !== "held") continue;
      next = Math.min(next, now + grant.remaining);
      if (grant.renewed && this.renewing === 0 && this.#renewAt !== NEVER)
        next = Math.min(next, this.#renewAt);
    }
    return next;
  }

  due(now: number): readonly Renewal[] {
    this.dropExpired();
    if (this.renewing > 0 || this.#renewAt === NEVER || this.#renewAt > now) return NOTHING;
    const renewals: Renewal[] = [];
    for (let grant = this.outermostHold; grant; grant = grant.next) {
      if (grant.state !== "held" || !grant.renewed) continue;
      const { primitive, wireId } = grant;
      const field = primitive.field(wireId);
      if (renewals.some((renewal) => renewal.field === field)) continue;
      const { renewer, key, side } = primitive;
      renewals.push({
        holder: this,
        renewer,
        key,
        field,
        besides: primitive.besides(wireId, this.countOn(side)),
      });
    }
    this.renewing = renewals.length;
    if (renewals.length > 0) this.#renewAt = NEVER;
    return renewals;
  }

  renewed(renewal: Renewal, word: number, sent: Instant): void {
    // Past its deadline it is lost, whatever the server says: after a stall answers are read before the timers speak.
    this.dropExpired();
    this.renewing--;
    const { clock, settings, events, watchdog } = this.env;
    const first = this.heldAs(renewal.field);
    // The holds may have been given back, or be others by now.
    if (!first) return watchdog.watch(this);
    const { side } = first.primitive;
    if (word !== DONE) return this.loseAll(this.absence(word, side), side);
    this.suspended = false;
    for (let grant: Grant | undefined = first; grant; grant = grant.next) {
      const isMeant = grant.state === "held" && grant.renewed && grant.primitive.side === side;
      if (isMeant) grant.raiseTerm(sent, settings.watchdogTimeout);
    }
    this.renewBy(onMono(clock, sent) + this.interval);
    if (events.heard("renewed"))
      events.emit("renewed", { ...eventOf(first.primitive), ownerId: first.wireId });
    watchdog.watch(this);
  }

  notRenewed(cause: unknown): void {
    trace("a renewal got no answer");
    this.renewing--;
    this.renewBy(this.env.clock.mono() + retryInterval(this.env.settings.watchdogTimeout));
    const [first] = this.held;
    if (first && !this.suspended) {
      this.suspended = true;
      this.env.events.emit("suspended", { ...eventOf(first.primitive), ownerId: first.wireId, cause });
    }
    this.env.watchdog.watch(this);
  }

  /** The outermost hold that stands under this field. */
  private heldAs(field: string): Grant | undefined {
    for (let grant = this.outermostHold; grant; grant = grant.next) {
      if (grant.state === "held" && grant.field === field) return grant;
    }
    return undefined;
  }

  /** The two sides of a read-write lock are renewed together, so the earlier time counts. */
  private renewBy(at: number): void {
    const due = Math.floor(at);
    this.#renewAt = this.#renewAt === NEVER ? due : Math.min(this.#renewAt, due);
  }

  private get interval(): number {
    return renewalInterval(this.env.settings.watchdogTimeout);
  }
}
