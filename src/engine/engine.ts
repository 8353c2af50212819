/**
 * Begins all calls of a client that want a lock or permits, and ends them when the client is closed. It knows no owners,
 * holds or scripts.
 */

import { onAbort } from "../base/abort-hub.js";
import { ClientClosedError } from "../base/errors.js";
import { type Item, List } from "../base/list.js";
import type { CommandRunner } from "../redis/command-runner.js";
import type { Acquisition } from "./acquisition.js";
import { Arbiter } from "./arbiter.js";
import { Contention } from "./contention.js";
import { RoundBackoff } from "./round-backoff.js";
import { TIME_IS_UP, WaitLoop, type WaitLoopOptions } from "./wait-loop.js";
import type { WaitQueue } from "./wait-queue.js";

export interface EngineOptions extends Omit<WaitLoopOptions, "commandTimeout" | "unavailable"> {
  readonly runner: Pick<CommandRunner, "commandTimeout" | "onReady" | "unavailable">;
}

/** A group's call. It uses several engines, and ends when one of them is closed. */
interface Joined extends Item {
  end(reason: unknown): void;
  readonly lockName: string;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #loop: WaitLoop;
  readonly #joined = new List<Joined>();
  readonly #backoffs = new Map<string, RoundBackoff>();
  /** Calls that are parts of a call for a group: that call begins their tries, wherever it waits. */
  readonly parts: List<Acquisition<unknown>> = new List();
  /** Knows which locks a call for several may not try all at once. */
  readonly contention: Contention = new Contention();
  /** Gives turns to the calls that want all of several locks. */
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
   * Waits until the call is granted what it wants; undefined if `wait` milliseconds end first. With `wait` 0 the call
   * tries once, and does not queue behind the waiters. `hasWaited`: the call is a part of a group's call that has waited
   * before, so an outage does not end it.
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

  /** As {@link acquire}, but tries once, without a place in the queue, whatever `wait` is; undefined also if refused. */
  once<G>(call: Acquisition<G>, wait: number, hasWaited = false): Promise<G | undefined> {
    call.single = true;
    call.hasWaited = hasWaited;
    call.within = Math.min(this.#options.runner.commandTimeout, wait);
    // The try may go on for longer: replicas acknowledge its grant, or the server confirms that the grant is undone.
    if (wait !== Number.POSITIVE_INFINITY) this.#limit(call, wait, undefined);
    return this.#loop.begin(call);
  }

  /** The calls that wait now. */
  get waiting(): Acquisition<unknown>[] {
    return this.#loop.calls().filter(({ announced }) => announced);
  }

  /** The calls whose try is on its way, and the parts of groups' calls, whose try may be. */
  get trying(): Acquisition<unknown>[] {
    return [...this.#loop.calls().filter(({ trying }) => trying), ...this.parts.all()];
  }

  /** Whether a call of this client wants this, or did a moment ago. */
  isWanted(queueName: string): boolean {
    return this.#loop.queues.has(queueName);
  }

  /** The wait queue of this name in this client; undefined without a queue or a call that could begin one. */
  queue(name: string): WaitQueue | undefined {
    return this.#loop.queues.get(name);
  }

  /**
   * Whether a call waits in the queue `queueName`. If so, the queue `behind` tries again when the last of these waiters
   * leaves without a grant: the server may not know of that waiter, and then announces nothing.
   */
  hasWaiters(queueName: string, behind: string): boolean {
    return this.#loop.queues.hasWaiters(queueName, behind);
  }

  /** The backoff of the calls that try in rounds under this queue name; {@link leaveRounds} must follow. */
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

  /** Calls `end` with CLIENT_CLOSED if this engine is closed before the returned function is called. */
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

  /** Rejects all calls with CLIENT_CLOSED; resolves when the calls of groups have ended, too. */
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
