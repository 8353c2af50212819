/** An engine in virtual time, and calls whose tries the test answers. */
import { getEventListeners } from "node:events";
import { expect } from "vitest";
import { RedisUnavailableError } from "../../src/base/errors.js";
import {
  Acquisition,
  type Attempt,
  type CoWaiters,
  type Listener,
  type QueueTraits,
  type Successor,
} from "../../src/engine/acquisition.js";
import { Engine } from "../../src/engine/engine.js";
import { type TestIn, testIn } from "../support/test-in.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

/** Milliseconds. */
export const POLL_CAP = 10_000;
export const COMMAND_TIMEOUT = 3_000;
export const FOREVER: number = Number.POSITIVE_INFINITY;
/** Milliseconds for which an empty queue is kept. */
export const KEPT = 8;

export const PLAIN: QueueTraits = { serverQueued: false, advertised: false, shared: false, handoff: true };
export const COUNTED: QueueTraits = { ...PLAIN, handoff: false };
export const SHARED: QueueTraits = { ...COUNTED, shared: true };
export const FAIR: QueueTraits = { ...COUNTED, serverQueued: true };
export const ADVERTISED: QueueTraits = { ...PLAIN, advertised: true };

/** The reason with which a test ends a call. */
export const ENOUGH: Error = new Error("enough");

type Refusal = Attempt<never> & { readonly granted: false };
type Granting = Partial<Omit<Attempt<never> & { readonly granted: true }, "granted" | "value">>;

/** A try that is on its way. */
interface Try {
  readonly within: number;
  readonly coWaiters: CoWaiters;
  answer(attempt: Attempt<string>): void;
  fail(error: unknown): void;
}

export interface CallOptions {
  readonly name?: string;
  readonly queueName?: string;
  readonly traits?: QueueTraits;
  readonly permits?: number;
  readonly ticket?: string;
  readonly backoff?: number;
}

export type Outcome = "pending" | { readonly value: unknown } | { readonly error: unknown };

export class ScriptedCall extends Acquisition<string> {
  override readonly lockName: string = "lock";
  override readonly queueName: string;
  override readonly traits: QueueTraits;
  /** The call's name, which is also the value of its grant. */
  readonly name: string;
  /** What the engine told the call, in order. */
  readonly told: string[] = [];
  /** All tries of the call; the last one may be on its way. */
  readonly tries: Try[] = [];
  /** The call's subscriptions. */
  readonly listeners: Set<Listener> = new Set();
  outcome: Outcome = "pending";
  away = false;
  /** Whether it is the call's turn. */
  turn = true;
  /** Whether the call's owner already has the lock. */
  nested = false;
  /** Called when the engine says that the call waits. */
  onWaiting: () => void = () => undefined;
  successor: Successor | undefined;
  readonly #options: CallOptions;

  constructor(options: CallOptions = {}) {
    super();
    this.#options = options;
    this.name = options.name ?? "a";
    this.queueName = options.queueName ?? "queue";
    this.traits = options.traits ?? PLAIN;
  }

  override get permits(): number {
    return this.#options.permits ?? 1;
  }

  override get ticket(): string | undefined {
    return this.#options.ticket;
  }

  override get backoff(): number {
    return this.#options.backoff ?? 0;
  }

  override attempt(within: number, coWaiters: CoWaiters): Promise<Attempt<string>> {
    return new Promise((answer, fail) => this.tries.push({ within, coWaiters, answer, fail }));
  }

  override listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  override begun(): void {
    this.told.push("begun");
  }

  override waiting(): void {
    this.told.push("waiting");
    this.onWaiting();
  }

  override withdraw(): void {
    this.told.push("withdraw");
  }

  override ended(taken: boolean): void {
    this.told.push(taken ? "taken" : "not taken");
  }

  override admitted(): boolean {
    return this.turn;
  }

  override reenters(): boolean {
    return this.nested;
  }

  override succeed(): Successor | undefined {
    return this.successor;
  }

  /** The server grants the last try. */
  async grant({ lease = 30_000, ...more }: Granting = {}): Promise<void> {
    this.#last.answer({ granted: true, value: this.name, lease, ...more });
    await settled();
  }

  /** The server refuses the last try. */
  async refuse(ttl = -1, more: Omit<Refusal, "granted" | "ttl"> = {}): Promise<void> {
    this.#last.answer({ granted: false, ttl, ...more });
    await settled();
  }

  /** The last try gets no answer. */
  async silence(): Promise<void> {
    this.#last.fail(new RedisUnavailableError("lock"));
    await settled();
  }

  async fail(error: unknown): Promise<void> {
    this.#last.fail(error);
    await settled();
  }

  /** A message arrives, or the confirmation of the subscription. */
  async message(): Promise<void> {
    for (const listener of [...this.listeners]) listener.hint();
    await settled();
  }

  get #last(): Try {
    const last = this.tries.at(-1);
    if (!last) throw new Error(`${this.name} has not tried`);
    return last;
  }
}

export class Scene {
  readonly clock: VirtualClock = new VirtualClock();
  readonly engine: Engine;
  readonly calls: ScriptedCall[] = [];
  readonly #signals: AbortSignal[] = [];
  readonly #onReady = new Set<() => void>();

  constructor(random: () => number = () => 0, exactTimers = false) {
    const runner = {
      unavailable: (lockName: string) => new RedisUnavailableError(lockName),
      commandTimeout: COMMAND_TIMEOUT,
      onReady: (callback: () => void) => {
        this.#onReady.add(callback);
        return () => this.#onReady.delete(callback);
      },
    };
    const waits = { pollCap: POLL_CAP, random, exactTimers, stir() {}, outside: (fn: () => void) => fn() };
    this.engine = new Engine({ clock: this.clock, runner, ...waits });
  }

  /** Starts a call. */
  async acquire(
    options: CallOptions | ScriptedCall = {},
    wait: number = FOREVER,
    signal?: AbortSignal,
  ): Promise<ScriptedCall> {
    const call = options instanceof ScriptedCall ? options : new ScriptedCall(options);
    if (signal) this.#signals.push(signal);
    return this.#watch(call, this.engine.acquire(call, wait, signal));
  }

  /** Starts a call that tries once. */
  async once(call: ScriptedCall, wait: number, hasWaited?: boolean): Promise<ScriptedCall> {
    return this.#watch(call, this.engine.once(call, wait, hasWaited));
  }

  /** A first call that waits and listens: refused, then tried again when the subscription was confirmed, and refused. */
  async waiting(
    options: CallOptions | ScriptedCall = {},
    ttl = -1,
    signal?: AbortSignal,
  ): Promise<ScriptedCall> {
    const call = await this.acquire(options, FOREVER, signal);
    await call.refuse(ttl);
    await call.message();
    await call.refuse(ttl);
    return call;
  }

  /** Ends a call before it has what it wants. */
  async end(call: ScriptedCall, reason: unknown = ENOUGH): Promise<void> {
    this.engine.end(call, reason);
    await settled();
  }

  /** Milliseconds until the call tries again by itself, up to `most`. */
  async untilNextTry(call: ScriptedCall, most: number = 2 * POLL_CAP): Promise<number> {
    const { length } = call.tries;
    for (let ms = 1; ms <= most; ms++) {
      await this.clock.advance(1);
      if (call.tries.length > length) return ms;
    }
    return FOREVER;
  }

  /** Redis is back. */
  async ready(): Promise<void> {
    for (const callback of this.#onReady) callback();
    await settled();
  }

  /** No timer, subscription or queue is left, once the time for which empty queues are kept is over. */
  async expectNothingLeft(): Promise<void> {
    await this.clock.advance(KEPT);
    expect(this.clock.timers, "timers").toBe(0);
    for (const { name, listeners, queueName } of this.calls) {
      expect(listeners.size, `subscriptions of ${name}`).toBe(0);
      expect(this.engine.queue(queueName), `queue of ${name}`).toBeUndefined();
    }
    for (const signal of this.#signals) expect(getEventListeners(signal, "abort")).toEqual([]);
  }

  /** Closes the engine, which ends all waiting calls, and checks that nothing is left. */
  async close(): Promise<void> {
    await this.engine.close();
    await this.expectNothingLeft();
  }

  async #watch(call: ScriptedCall, result: Promise<unknown>): Promise<ScriptedCall> {
    this.calls.push(call);
    result.then(
      (value) => {
        call.outcome = { value };
      },
      (error: unknown) => {
        call.outcome = { error };
      },
    );
    await settled();
    return call;
  }
}

/** Each test gets a scene, in which nothing may be left at the end. */
export const test: TestIn<Scene> = testIn(
  () => new Scene(),
  async (scene, body) => {
    await body();
    await scene.expectNothingLeft();
  },
);

/** The same for tests that end with waiting calls: the scene is closed first. */
export const testOpenEnd: TestIn<Scene> = testIn(
  () => new Scene(),
  async (scene, body) => {
    await body();
    await scene.close();
  },
);
