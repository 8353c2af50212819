/** What a client holds and waits for now, as `holdfast/otel` asks it: it has no other way to the parts of a client. */
import type { LockEvent } from "./events.js";

/** Of one hold, permit or call. */
export type About = Pick<LockEvent, "lockName" | "kind">;

export interface Now {
  /** As many as `stats().held`. */
  readonly held: readonly About[];
  /** As many as `stats().waiting`. */
  readonly waiting: readonly About[];
}

/** The method of a client that tells it, in every copy of the library. */
export const NOW: unique symbol = Symbol.for("holdfast.now/1") as never;
