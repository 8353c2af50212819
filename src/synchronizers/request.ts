/**
 * One call that waits for a number in Redis: how the engine sees it, and how a try is undone that nobody waits for any
 * more.
 */
import { tellCaller } from "../base/caller.js";
import { callChannel, isHeard, traceCall } from "../base/channels.js";
import { ClientClosedError, isLockError } from "../base/errors.js";
import { noop, quietly } from "../base/work.js";
import {
  Acquisition,
  type Attempt,
  type CoWaiters,
  type Listener,
  type QueueTraits,
} from "../engine/acquisition.js";
import type { SharedNumber } from "./number.js";

/** What a call wants. */
export interface Want<G> {
  readonly permits: number;
  /** A grant to one call takes nothing from the others. */
  readonly shared?: boolean;
  /** No event tells that the call was not granted. */
  readonly isUntold?: boolean;
  /** Tries once; every try of a call is the same call to the server. */
  attempt(within: number): Promise<Attempt<G>>;
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
  const { env, name } = number;
  env.assertOpen(name);
  if (signal?.aborted) throw signal.reason;
  const begun = env.clock.mono();
  const tellEnd = (error?: unknown) => {
    const about = { lockName: name, kind: number.kind };
    if (!want.isUntold) env.events.tellEnd(about, { wait, signal }, env.clock.mono() - begun, error);
  };
  const acquire = async () => {
    const granted = await env.engine.acquire(new Request(number, want), wait, signal);
    if (granted === undefined) return undefined;
    if (env.closed) {
      if (want.undo) env.settle(want.undo());
      throw new ClientClosedError(name);
    }
    accept(granted);
    return granted;
  };
  const call = isHeard(callChannel)
    ? traceCall({ clientId: env.clientId, lockName: name, kind: number.kind }, { wait, signal }, acquire)
    : acquire();
  const granted = await call.catch((error: unknown) => {
    tellEnd(error);
    return tellCaller(error);
  });
  if (granted === undefined) tellEnd();
  return granted;
}

const COUNTED: QueueTraits = { serverQueued: false, advertised: false, shared: false, handoff: false };
const SHARED: QueueTraits = { ...COUNTED, shared: true };

export class Request<G> extends Acquisition<G> {
  override readonly traits: QueueTraits;
  readonly number: SharedNumber;
  readonly #want: Want<G>;
  /** A try is on its way. */
  #inFlight = false;
  /** The server has granted something, or may yet do so. */
  #outcomeUnknown = false;

  constructor(number: SharedNumber, want: Want<G>) {
    super();
    this.number = number;
    this.#want = want;
    this.traits = want.shared ? SHARED : COUNTED;
  }

  override get lockName(): string {
    return this.number.name;
  }

  override get permits(): number {
    return this.#want.permits;
  }

  override get queueName(): string {
    return `${this.number.kind}/${this.number.key}`;
  }

  override get away(): boolean {
    return this.number.env.runner.servers.isAway(this.number.key);
  }

  override whenAnswered(callback: () => void): () => void {
    return this.number.env.runner.servers.healthOf(this.number.key).onAnswer(callback);
  }

  override listen(listener: Listener): () => void {
    return this.number.env.router.subscribe(this.number.channel, listener);
  }

  override async attempt(within: number, _coWaiters: CoWaiters): Promise<Attempt<G>> {
    const { runner } = this.number.env;
    const left = runner.prepared ? within : await runner.prepare(this.lockName, within);
    if (this.over) return { granted: false, ttl: 0 };
    const full = runner.backlog.refusal(this.lockName);
    if (full) throw full;
    const { connectionEpoch } = runner;
    this.#inFlight = true;
    try {
      const attempt = await this.#want.attempt(left);
      // A command that was under way when the connection was lost may arrive once more.
      this.#outcomeUnknown ||= attempt.granted || runner.connectionEpoch !== connectionEpoch;
      return attempt;
    } catch (error) {
      this.#outcomeUnknown = true;
      if (isLockError(error, "REPLICAS")) await quietly(runner.withTimeout(this.lockName, this.#undo()));
      throw error;
    } finally {
      this.#inFlight = false;
      if (this.over) void this.#undo();
    }
  }

  override waiting(): void {
    this.number.emit("waiting", {});
  }

  override ended(taken: boolean): void {
    if (taken) return;
    if (!this.#inFlight) void this.#undo();
  }

  /** Gives back in the background what may have been granted. */
  #undo(): Promise<void> {
    if (!this.#outcomeUnknown || !this.#want.undo) return Promise.resolve();
    this.#outcomeUnknown = false;
    const undone = quietly(this.#want.undo());
    this.number.env.settle(undone);
    return undone;
  }
}
