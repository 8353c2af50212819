/** What a call can want and wait for: one side of a lock, the members of a group, permits, the opening of a latch. */
import type { Details, LockEventName, LockKind } from "../base/events.js";
import type { Side, Traits } from "../base/traits.js";
import type { Env } from "../env.js";

/** What has one key in Redis. */
export interface Part {
  readonly env: Env;
  /** As users know it. */
  readonly lockName: string;
  readonly kind: LockKind;
  readonly key: string;
  /** Of a lock. */
  readonly side?: Side;
}

/** What ends a call that waits. */
export interface Limits {
  /** Milliseconds; 0 for one try, Infinity without limit. */
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /** Monotonic milliseconds. */
  readonly begun: number;
}

export interface Wanted extends Part {
  /** Calls that want the same wait at one site. */
  readonly siteName: string;
  /** Where releases are announced. */
  readonly channel: string;
  readonly traits: Traits;
  /** More than one of a group. */
  readonly parts: readonly Part[];
  /** Emits an event about it on the client, or on that of each member. */
  emit<E extends LockEventName>(event: E, details: Details<E>): void;
}
