/**
 * What a client holds and waits for now. `holdfast/otel` asks for it, because it has no other access to a client's
 * parts.
 */
import type { LockEvent } from "./events.js";

/** What is told of one hold, permit or call. */
export type About = Pick<LockEvent, "lockName" | "kind">;

export interface Now {
  /** One for each that `stats().held` counts. */
  readonly held: readonly About[];
  /** One for each that `stats().waiting` counts. */
  readonly waiting: readonly About[];
}

/** The name of the client's method that tells this; the same symbol in every copy of the library. */
export const NOW: unique symbol = Symbol.for("holdfast.now/1") as never;
