/**
 * The tracing channels `holdfast:lock` (a call, until it is granted or over) and `holdfast:hold` (from grant to end) of
 * node:diagnostics_channel. While nobody subscribes, no contexts are made.
 */
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";
import { isLockError } from "./errors.js";
import { type LockKind, reasonOf } from "./events.js";

/** What subscribers of `holdfast:lock` get; it is filled in as the call goes on. */
export interface LockCallContext {
  /** The id of the client that makes the call. */
  readonly clientId: string;
  /** The name of the lock or synchronizer, without the prefix. */
  readonly lockName: string;
  /** The kind of lock or synchronizer. */
  readonly kind: LockKind;
  /** The owner that was granted the lock, `clientId:n`; absent without a grant. */
  ownerId?: string;
  /**
   * How the call ended: `timeout`, `abort` and `closed` also if it rejects for that reason. Absent if it failed
   * otherwise.
   */
  outcome?: "acquired" | "rejected" | "timeout" | "abort" | "closed";
}

/** What subscribers of `holdfast:hold` get; it is filled in when the hold ends. */
export interface HoldContext {
  /** The id of the client that has the hold. */
  readonly clientId: string;
  /** The name of the lock, without the prefix. */
  readonly lockName: string;
  /** The kind of lock. */
  readonly kind: LockKind;
  /** The owner that was granted the lock, `clientId:n`. */
  readonly ownerId: string;
  /** How the hold ended: `released` as soon as it is on its way back. */
  outcome?: "released" | "lost";
  /** The LockLostError, if the hold was lost. */
  error?: unknown;
}

export const callChannel: TracingChannel<LockCallContext> = tracingChannel("holdfast:lock");
export const holdChannel: TracingChannel<HoldContext> = tracingChannel("holdfast:hold");

/** Whether anybody subscribes. Node before 20.13 cannot tell that of all its channels together. */
export function isHeard({ start, end, asyncStart, asyncEnd, error }: TracingChannel<never>): boolean {
  const hearsStart = start.hasSubscribers || end.hasSubscribers;
  return hearsStart || asyncStart.hasSubscribers || asyncEnd.hasSubscribers || error.hasSubscribers;
}

/**
 * Runs a call so that subscribers can follow it. If it was not granted within its wait, `call` resolves with null or
 * undefined, or rejects with WAIT_TIMEOUT.
 */
export function traceCall<G>(
  context: LockCallContext,
  { wait, signal }: { readonly wait: number; readonly signal: AbortSignal | undefined },
  call: () => Promise<G>,
): Promise<G> {
  const refused = wait === 0 ? "rejected" : "timeout";
  const followed = async () => {
    const granted = await call().catch((error: unknown) => {
      const ended = isLockError(error, "WAIT_TIMEOUT") ? refused : reasonOf(error, signal);
      if (ended) context.outcome = ended;
      throw error;
    });
    const isGranted = granted !== undefined && granted !== null;
    context.outcome = isGranted ? "acquired" : refused;
    const ownerId = isGranted ? (granted as { ownerId?: unknown }).ownerId : undefined;
    if (typeof ownerId === "string") context.ownerId = ownerId;
    return granted;
  };
  return callChannel.tracePromise(followed, context);
}
