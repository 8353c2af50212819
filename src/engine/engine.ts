/** All calls of a client that want something: how they begin, and how they end when the client does. */
import { ClientClosedError } from "../base/errors.js";
import { type Item, List } from "../base/list.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { onAbort } from "./abort-hub.js";
import type { Acquisition } from "./acquisition.js";
import { Arbiter } from "./arbiter.js";
import { RoundBackoff } from "./round-backoff.js";
import { TIME_IS_UP, WaitLoop, type WaitLoopOptions } from "./wait-loop.js";
import type { WaitQueue } from "./wait-queue.js";

export interface EngineOptions extends Omit<WaitLoopOptions, "commandTimeout" | "unavailable"> {
  readonly runner: Pick<CommandRunner, "commandTimeout" | "onReady" | "unavailable">;
}

/** What a call of several engines does when one of them is closed. */
interface Joined extends Item {
  end(reason: unknown): void;
  readonly lockName: string;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #loop: WaitLoop;
  readonly #joined = new List<Joined>();
  readonly #backoffs = new Map<string, RoundBackoff>();
  /** Of the calls that want all of several locks. */
  readonly arbiter: Arbiter = new Arbiter();
  readonly #stopListening: () => void;
  #onIdle: (() => void) | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    const { runner } = options;
    this.#loop = new WaitLoop({
      ...options,
      commandTimeout: runner.commandTimeout,
      unavailable: (lockName) => runner.unavailable(lockName),
    });
    this.#stopListening = runner.onReady(() => this.#loop.hintAll());
  }

  /**
   * Waits until the call is granted what it wants; undefined when `wait` milliseconds are over first. With `wait` 0 it
   * tries once, past those that wait. `hasWaited`: the call that this is a part of has had an answer before; from then
   * on an outage does not end it.
   */
  acquire<G>(
    call: Acquisition<G>,
    wait: number,
    signal: AbortSignal | undefined,
    hasWaited = false,
  ): Promise<G | undefined> {
    const { commandTimeout } = this.#options.runner;
    call.single = wait === 0;
    call.hasWaited = hasWaited;
    call.within = wait > 0 ? Math.min(commandTimeout, wait) : commandTimeout;
    const hasTimeout = wait > 0 && wait !== Number.POSITIVE_INFINITY;
    if (hasTimeout || signal) this.#limit(call, hasTimeout ? wait : undefined, signal);
    return this.#loop.begin(call);
  }

  /** Tries once, past those that wait, for at most `within` milliseconds; undefined if it is refused. */
  once<G>(call: Acquisition<G>, within: number, signal: AbortSignal | undefined): Promise<G | undefined> {
    call.single = true;
    call.within = within;
    if (signal) this.#limit(call, undefined, signal);
    return this.#loop.begin(call);
  }

  /** The calls that wait now. */
  get waiting(): Acquisition<unknown>[] {
    return this.#loop.calls().filter(({ announced }) => announced);
  }

  /** The calls whose try is on its way. */
  get trying(): Acquisition<unknown>[] {
    return this.#loop.calls().filter(({ trying }) => trying);
  }

  /** The calls of this process that want what has this queue name; undefined if there are none. */
  queue(name: string): WaitQueue | undefined {
    return this.#loop.queues.get(name);
  }

  /**
   * Whether a call of this process that wants what has this queue name stands in line. If so, the queue named `behind` tries
   * again should the last one leave without a grant, and without a word to the server.
   */
  hasWaiters(queueName: string, behind: string): boolean {
    return this.#loop.queues.hasWaiters(queueName, behind);
  }

  /** For a call that tries in rounds; {@link leaveRounds} is to follow. */
  joinRounds(queueName: string): RoundBackoff {
    const backoff = this.#backoffs.get(queueName) ?? new RoundBackoff();
    this.#backoffs.set(queueName, backoff);
    backoff.calls++;
    return backoff;
  }

  /** The call is over. */
  leaveRounds(queueName: string): void {
    const backoff = this.#backoffs.get(queueName);
    if (backoff && --backoff.calls === 0) this.#backoffs.delete(queueName);
  }

  /** Ends the wait of a call that uses other engines too when this one is closed, until the returned function is called. */
  join(lockName: string, end: (reason: unknown) => void): () => void {
    const joined: Joined = { next: undefined, prev: undefined, list: undefined, lockName, end };
    this.#joined.add(joined);
    return () => {
      this.#joined.remove(joined);
      this.#checkIdle();
    };
  }

  /** Ends a call at once: it rejects with the reason. The first end counts. */
  end(call: Acquisition<unknown>, reason: unknown): void {
    this.#loop.end(call, reason);
  }

  /** Rejects everybody who waits; resolves when all have gone. */
  close(): Promise<void> {
    this.#stopListening();
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    for (const call of this.#loop.calls().reverse()) {
      this.#loop.end(call, new ClientClosedError(call.lockName));
    }
    for (const { lockName, end } of this.#joined.all().reverse()) end(new ClientClosedError(lockName));
    this.#checkIdle();
    return idle;
  }

  /** Ends the call when `wait` milliseconds are over, or when its signal aborts. */
  #limit(call: Acquisition<unknown>, wait: number | undefined, signal: AbortSignal | undefined): void {
    const { clock } = this.#options;
    const cancelTimer =
      wait === undefined ? undefined : clock.after(wait, () => this.#loop.end(call, TIME_IS_UP));
    const stopListening = signal && onAbort(signal, () => this.#loop.end(call, signal.reason));
    call.dispose = () => {
      cancelTimer?.();
      stopListening?.();
    };
  }

  #checkIdle(): void {
    if (!this.#joined.first) this.#onIdle?.();
  }
}
