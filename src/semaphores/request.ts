/** One call that waits for a number in Redis: free permits, or the opening of a latch. */
import { tellCaller } from "../base/caller.js";
import { callChannel, isHeard, traceCall } from "../base/channels.js";
import { ClientClosedError } from "../base/errors.js";
import { noop, quietly } from "../base/work.js";
import type { AnyScriptCall, PlainCommand } from "../redis/call.js";
import { type Limits, Waiter } from "../waiting/waiter.js";
import type { AnyStep, SharedNumber } from "./number.js";

/**
 * The answer to a try. Granted: `remaining` of the number is free for other calls. Refused: `ttl` is in how many
 * milliseconds it may be free without a message; -1 if that is not known. `isUnset`: nobody has set the number.
 */
export type Attempt<G> =
  | { readonly granted: true; readonly value: G; readonly remaining?: number }
  | { readonly granted: false; readonly ttl: number; readonly isUnset?: boolean };

/** What a call wants. */
export interface Want<G> {
  readonly permits: number;
  /** No event tells that the call was not granted. */
  readonly isUntold?: boolean;
  /** A try begins. */
  begin?(): void;
  step(): AnyStep;
  /** @throws LOCK_LOST if a grant came too late */
  read(reply: unknown): Attempt<G>;
  /** Gives back what a try was granted, or may still be granted; absent if tries take nothing. */
  undo?(): Promise<unknown>;
}

/**
 * Waits until the want is granted; undefined when `wait` milliseconds are over first. `accept` gets the grant at once.
 * @throws CLIENT_CLOSED also if the client was closed while the grant was on its way to the caller: the grant is undone
 */
export async function waitFor<G>(
  number: SharedNumber,
  want: Want<G>,
  wait: number,
  signal: AbortSignal | undefined,
  accept: (granted: G) => void = noop,
): Promise<G | undefined> {
  const { env, lockName, kind } = number;
  env.assertOpen(lockName);
  if (signal?.aborted) throw signal.reason;
  const acquire = async () => {
    const begun = env.clock.mono();
    const granted = await new Request(number, want, { wait, signal, begun }).start();
    if (granted === undefined) return undefined;
    if (env.closed) {
      if (want.undo) env.settle(want.undo());
      const error = new ClientClosedError(lockName);
      const waited = env.clock.mono() - begun;
      if (!want.isUntold) env.events.tellEnd(number.about, { wait, signal }, waited, error);
      throw error;
    }
    accept(granted);
    return granted;
  };
  const call = isHeard(callChannel)
    ? traceCall({ clientId: env.clientId, lockName, kind }, { wait, signal }, acquire)
    : acquire();
  return call.catch(tellCaller);
}

class Request<G> extends Waiter<SharedNumber, G> {
  readonly #want: Want<G>;
  #isUnsure = false;
  #isUnset = false;
  #epoch = 0;

  constructor(number: SharedNumber, want: Want<G>, limits: Limits) {
    super(number, limits);
    this.#want = want;
  }

  override get permits(): number {
    return this.#want.permits;
  }

  override step(): void {
    this.env.sites.enter(this);
  }

  override tryNow(): void {
    if (!this.mayTry()) return;
    this.tries();
    this.#epoch = this.env.runner.connectionEpoch;
    this.#want.begin?.();
    this.sendTry();
  }

  protected override isGrant(reply: unknown): boolean {
    return this.#want.read(reply).granted;
  }

  protected override request(): AnyScriptCall | PlainCommand {
    return this.try({ lockName: this.lockName, ...this.#want.step() });
  }

  protected override answered(reply: unknown): void {
    const attempt = this.#want.read(reply);
    const { site } = this;
    // A command that was under way when the connection was lost may arrive once more.
    this.#isUnsure ||= this.env.runner.connectionEpoch !== this.#epoch;
    this.rest();
    if (!attempt.granted) {
      this.#isUnset = attempt.isUnset === true;
      return this.refuse(attempt.ttl);
    }
    this.grant(attempt.value);
    if (attempt.remaining) site?.hintFor(attempt.remaining);
  }

  protected override failed(error: unknown): void {
    this.#isUnsure = true;
    this.rest();
    this.fail(error);
  }

  protected override late(reply: unknown): void {
    // Over one connection the undo is behind the try.
    if (!this.env.replicas) return;
    try {
      if (!this.isGrant(reply)) return;
    } catch {
      // It was granted, for a lease that is over here.
    }
    this.#isUnsure = true;
    void this.withdraw();
  }

  protected override tellWaiting(): void {
    this.wanted.emit("waiting", this.#isUnset ? { permits: "unset" } : {});
  }

  protected override tellEnd(error: unknown): void {
    if (this.#want.isUntold) return;
    const { env } = this;
    env.events.tellEnd(this.wanted.about, this, env.clock.mono() - this.begun, error);
  }

  protected override unsure(): void {
    this.#isUnsure = true;
  }

  protected override withdraw(): Promise<void> | undefined {
    const want = this.#want;
    if (!this.#isUnsure || !want.undo) return undefined;
    this.#isUnsure = false;
    const undone = quietly(want.undo());
    this.env.settle(undone);
    return undone;
  }
}
