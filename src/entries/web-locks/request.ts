/** One call of `request()`, from its place in the queue of its name to the end of its callback. */
import { AsyncResource } from "node:async_hooks";
import { type Hold, isLockError } from "../../index.js";
import type { Callback, CheckedRequest } from "./arguments.js";
import type { LockMode } from "./types.js";

/**
 * - queued: other requests of this process go first
 * - trying: Redis has been asked once, and has not answered
 * - waiting: the request waits for a lock, of this process or another
 * - unanswered: Redis gives no answer, and is asked again
 * - held: the callback has the lock
 * - over: nobody waits for the request any more; its callback may still run
 */
export type Phase = "queued" | "trying" | "waiting" | "unanswered" | "held" | "over";

/** The callbacks of each signal: with a listener for each callback, Node would warn of a leak at the eleventh. */
const followers = new WeakMap<AbortSignal, Set<() => void>>();

function follow(signal: AbortSignal, callback: () => void): () => void {
  let all = followers.get(signal);
  if (!all) {
    const callbacks = new Set<() => void>();
    all = callbacks;
    followers.set(signal, callbacks);
    const tell = () => {
      for (const each of [...callbacks]) each();
    };
    signal.addEventListener("abort", tell, { once: true });
  }
  all.add(callback);
  return () => all.delete(callback);
}

export class WebLockRequest {
  readonly name: string;
  readonly mode: LockMode;
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  readonly signal: AbortSignal | undefined;
  /** The promise that the caller gets. */
  readonly promise: Promise<unknown>;
  phase: Phase = "queued";
  /** Redis has answered this request, or it stood behind others: from then on an outage does not end it. */
  hasWaited: boolean = false;
  hold: Hold | undefined;
  readonly #callback: Callback;
  /** The async context of the caller: the callback runs in it, not in the context of the request that made way. */
  readonly #context = new AsyncResource("holdfast.web-lock");
  #resolve: (value: unknown) => void = () => {};
  #reject: (reason: unknown) => void = () => {};
  #unfollow: (() => void) | undefined;
  #answered: Promise<void> | undefined;
  #tellAnswer: () => void = () => {};

  constructor(checked: CheckedRequest) {
    this.name = checked.name;
    this.mode = checked.mode;
    this.ifAvailable = checked.ifAvailable;
    this.steal = checked.steal;
    this.signal = checked.signal;
    this.#callback = checked.callback;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** True for a request that waits for its turn: it neither tries just once nor steals. */
  get isPlain(): boolean {
    return !(this.ifAvailable || this.steal);
  }

  /** Whether this error, of a try, does not end the request: it waits on. */
  survives(error: unknown): boolean {
    return this.hasWaited && !this.hold && this.phase !== "over" && isLockError(error, "UNAVAILABLE");
  }

  /** Resolves when it is known whether the request is granted at once. */
  get answered(): Promise<void> {
    if (this.phase !== "trying") return Promise.resolve();
    this.#answered ??= new Promise((resolve) => {
      this.#tellAnswer = resolve;
    });
    return this.#answered;
  }

  enter(phase: Phase): void {
    this.phase = phase;
    if (phase !== "trying") this.#tellAnswer();
    if (phase === "over") this.#unfollow?.();
  }

  /** Calls back if the signal aborts before the callback of the request is called. */
  onAbort(callback: () => void): void {
    if (this.signal) this.#unfollow = follow(this.signal, callback);
  }

  /** Runs a function in the context of the caller. */
  within<T>(fn: () => T): T {
    return this.#context.runInAsyncScope(fn);
  }

  /** Runs the callback with the lock, or with null. */
  call(granted: boolean): unknown {
    this.#unfollow?.();
    const { name, mode } = this;
    const lock = granted ? Object.freeze({ name, mode, [Symbol.toStringTag]: "Lock" }) : null;
    return this.#context.runInAsyncScope(this.#callback, undefined, lock);
  }

  /** Ends the request; only its first end counts. */
  resolve(value: unknown): void {
    this.enter("over");
    this.#resolve(value);
  }

  /** Ends the request; only its first end counts. */
  reject(reason: unknown): void {
    this.enter("over");
    this.#reject(reason);
  }
}
