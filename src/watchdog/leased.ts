/**
 * What ends at a deadline unless it is renewed before: a grant, or a permit that is kept. The deadline is counted from when
 * a command was sent, less the drift, so it passes here before it can pass on the server.
 */
import { type Clock, type Instant, instant } from "../base/clock.js";
import type { LossReason } from "../base/errors.js";
import { untilDeadline } from "../base/lease.js";
import type { Due } from "../base/timer-heap.js";
import type { Env } from "../env.js";
import type { Renewal } from "./watchdog.js";

export abstract class Leased implements Due {
  dueAt = 0;
  index = -1;
  /** Monotonic milliseconds; Infinity while no renewal is due, because one is on its way or none is wanted. */
  renewAt: number = Number.POSITIVE_INFINITY;
  /** Renewals on their way. */
  renewing = 0;
  /** The last renewal got no answer. */
  isSuspended = false;
  state: "held" | "ending" | "over" = "held";
  /** Counts the deadlines that were lowered here: an answer to a command before the last of them raises nothing. */
  term = 0;
  /** The local deadline, in monotonic milliseconds. It has also passed when the wall clock says so. */
  endsAt = 0;
  private endsAtWall = 0;
  /** Epoch milliseconds at which it was last known to be held: when what the server has answered was sent. */
  protected knownAt = 0;
  readonly env: Env;

  constructor(env: Env) {
    this.env = env;
  }

  /** The watchdog keeps it. */
  abstract readonly isRenewed: boolean;
  /** The renewal that is due; undefined if it is not wanted any more. */
  abstract renewal(): Renewal | undefined;
  /** The server does not have it any more; `word`: what it said instead. */
  abstract gone(word: number): void;
  /** It is lost since `since`, in epoch milliseconds: for good. */
  abstract lose(reason: LossReason, since: number): void;
  /** What its events say of it. */
  abstract tell(event: "renewed"): void;
  abstract tell(event: "suspended", more: { readonly cause: unknown }): void;

  get clock(): Clock {
    return this.env.clock;
  }

  /** Whether it is held now; loses it if its deadline has passed. */
  get isHeld(): boolean {
    this.check();
    return this.state === "held";
  }

  check(now: Instant = instant(this.clock)): void {
    if (this.state !== "held") return;
    const left = this.left(now);
    if (left > 0) return;
    this.lose(this.isSuspended || this.renewing > 0 ? "unreachable" : "expired", now.wall + left);
  }

  /** Milliseconds to the deadline; below 0 if it has passed. */
  left({ mono, wall }: Instant): number {
    return Math.min(this.endsAt - mono, this.endsAtWall - wall);
  }

  /** Whether the server's word on its renewal says that the server has it. */
  has(word: number): boolean {
    return word > 0;
  }

  /** The server has granted `lease` milliseconds from when a command was sent, in this `term`. */
  raise(sent: Instant, lease: number, term: number = this.term): void {
    if (term !== this.term || this.state !== "held") return;
    const ms = untilDeadline(lease, this.env.settings.drift, 0);
    this.knownAt = Math.max(this.knownAt, sent.wall);
    this.endsAt = Math.max(this.endsAt, sent.mono + ms);
    this.endsAtWall = Math.max(this.endsAtWall, sent.wall + ms);
  }

  /** Brings the deadline forward, here alone, to `lease` milliseconds from now; false if that is later. */
  protected lower(lease: number): boolean {
    const now = instant(this.clock);
    const ms = untilDeadline(lease, this.env.settings.drift, 0);
    if (ms > this.left(now)) return false;
    this.term++;
    this.endsAt = now.mono + ms;
    this.endsAtWall = now.wall + ms;
    this.env.watchdog.watch(this);
    return true;
  }
}
