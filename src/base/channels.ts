/**
 * The tracing channels `holdfast:lock` (a call, until it is granted or over) and `holdfast:hold` (from grant to end) of
 * node:diagnostics_channel. While nobody listens, nothing is made for them.
 */
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";
import { type CallLimits, type LockKind, reasonOf } from "./events.js";

/** What subscribers of `holdfast:lock` get, filled in as the call goes on. */
export interface LockCallContext {
  /** Of the client that the call is made by. */
  readonly clientId: string;
  /** Without the prefix. */
  readonly lockName: string;
  /** What it is a lock or synchronizer of. */
  readonly kind: LockKind;
  /** Under which it was granted, if it was. */
  ownerId?: string;
  /** How it ended, unless it failed: `timeout`, `abort` and `closed` also of a call that rejects for it. */
  outcome?: "acquired" | "rejected" | "timeout" | "abort" | "closed";
}

/** What subscribers of `holdfast:hold` get, filled in when it ends. */
export interface HoldContext {
  /** Of the client that has the hold. */
  readonly clientId: string;
  /** Without the prefix. */
  readonly lockName: string;
  /** What it is a lock of. */
  readonly kind: LockKind;
  /** Under which it was granted. */
  readonly ownerId: string;
  /** How it ended: `released` as soon as it is on its way back. */
  outcome?: "released" | "lost";
  /** The LockLostError of one that was lost. */
  error?: unknown;
}

export const callChannel: TracingChannel<LockCallContext> = tracingChannel("holdfast:lock");
export const holdChannel: TracingChannel<HoldContext> = tracingChannel("holdfast:hold");

type Heard = Readonly<
  Record<"start" | "end" | "asyncStart" | "asyncEnd" | "error", { hasSubscribers: boolean }>
> & { readonly hasSubscribers?: boolean };

export function isHeard(channel: Heard): boolean {
  return channel.hasSubscribers ?? isAnyHeard(channel);
}

/** Node before 20.13 does not know it of the channel as a whole. */
function isAnyHeard({ start, end, asyncStart, asyncEnd, error }: Heard): boolean {
  return [start, end, asyncStart, asyncEnd, error].some(({ hasSubscribers }) => hasSubscribers);
}

/**
 * Runs a call so that subscribers can follow it. `call` resolves with undefined if it was not granted within its wait;
 * `refuse` then rejects with what the caller gets, and subscribers of `error` too.
 */
export function traceCall<G>(
  context: LockCallContext,
  { wait, signal }: CallLimits,
  call: () => Promise<G | undefined>,
  refuse?: () => Promise<never>,
): Promise<G | undefined> {
  const followed = async () => {
    const granted = await call().catch((error: unknown) => {
      const ended = reasonOf(error, signal);
      if (ended) context.outcome = ended;
      throw error;
    });
    const refused = wait === 0 ? "rejected" : "timeout";
    context.outcome = granted === undefined ? refused : "acquired";
    if (granted === undefined && refuse) return refuse();
    const ownerId = (granted as { ownerId?: unknown } | undefined)?.ownerId;
    if (typeof ownerId === "string") context.ownerId = ownerId;
    return granted;
  };
  return callChannel.tracePromise(followed, context);
}
