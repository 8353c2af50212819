/**
 * The only wait loop of the library, for every kind of lock and synchronizer.
 *
 * A call tries first. Refused, it enters the queue of its name, subscribes to the channel, and tries again once the server
 * has confirmed the subscription, so that no release is missed. Then it sleeps until a message, the end of the holder's
 * TTL, or `pollCap`. The loop knows nothing of owners, holds or scripts: an {@link Acquisition} tries, and undoes a try
 * whose call has ended.
 */
import type { Clock } from "../base/clock.js";
import { isLockError } from "../base/errors.js";
import { List } from "../base/list.js";
import type { Acquisition, Attempt, CoWaiters } from "./acquisition.js";
import { WaitQueues } from "./wait-queues.js";

/** The reason of a call whose `wait` is over. */
export const TIME_IS_UP: unique symbol = Symbol("time is up");
const NO_CO_WAITERS: CoWaiters = [];
const NO_ANSWER: Attempt<never> = { granted: false, ttl: -1 };

/** Added to a TTL before the next try: PTTL is truncated, and a timer may fire a millisecond early. */
const MARGIN = 2;
const SHORTEST_SLEEP = 5;
const LONGEST_JITTER = 50;

export interface WaitLoopOptions {
  readonly clock: Clock;
  /** Milliseconds. */
  readonly commandTimeout: number;
  /** The error of a call that got no answer. */
  readonly unavailable: (lockName: string) => unknown;
  /** Milliseconds. */
  readonly pollCap: number;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** The clock is the server's own, and its timers fire when they are due: a waiter tries as a TTL ends. */
  readonly exactTimers?: boolean;
  /** Called when a call begins to wait. */
  readonly stir: () => void;
  /** Runs a function outside every scope. */
  readonly outside: (fn: () => void) => void;
}

export class WaitLoop {
  readonly #options: WaitLoopOptions;
  /** One queue for all calls that want the same. */
  readonly queues: WaitQueues;
  /** Calls that try once. */
  readonly #single = new List<Acquisition<unknown>>();

  constructor(options: WaitLoopOptions) {
    this.#options = options;
    this.queues = new WaitQueues({ ...options, end: (call, reason) => this.end(call, reason) });
  }

  /** All calls under way. */
  calls(): Acquisition<unknown>[] {
    return [...this.queues.calls(), ...this.#single.all()];
  }

  /** The connection is back: releases that were announced meanwhile were not heard, so every queue tries. */
  hintAll(): void {
    for (const queue of this.queues) queue.hint();
  }

  /** Resolves with what the call is granted; undefined if it is refused, or its wait is over. */
  begin<G>(call: Acquisition<G>): Promise<G | undefined> {
    return new Promise<G | undefined>((resolve, reject) => {
      call.resolve = resolve as (value: unknown) => void;
      call.reject = reject;
      if (call.single) this.#single.add(call);
      else this.queues.begin(call);
      call.begun();
      this.#step(call);
    });
  }

  /** Ends a call at once, rejected with the reason. Only the first end of a call counts. */
  end(call: Acquisition<unknown>, reason: unknown): void {
    if (call.over) return;
    const { away, hasWaited, lockName } = call;
    this.#finish(call);
    if (reason !== TIME_IS_UP) call.reject(reason);
    else if (hasWaited && !away) call.resolve(undefined);
    else call.reject(this.#options.unavailable(lockName));
  }

  /** Called while the call has no try on its way: tries if a try is due, else sleeps. */
  #step(call: Acquisition<unknown>): void {
    if (call.over) return;
    try {
      if (!call.admitted()) return this.#awaitTurn(call);
    } catch (error) {
      return this.end(call, error);
    }
    if (call.single) return this.#try(call, undefined);
    if (!call.queued || call.reenters()) return this.#try(call, NO_CO_WAITERS);
    const queue = this.queues.join(call);
    queue.enter(call);
    if (queue.first !== call) call.hasWaited = true;
    const ms = queue.due(call);
    if (ms === 0) this.#try(call, queue.trying(call));
    else this.#sleep(call, ms);
  }

  #awaitTurn(call: Acquisition<unknown>): void {
    if (call.single) return this.#refuse(call);
    // A call that awaits its owner's turn must not hold up the calls behind it.
    if (call.queued) this.queues.join(call).leave(call, false);
    call.withdraw();
    this.#sleep(call, Number.POSITIVE_INFINITY);
  }

  /** Sleeps until the call is resumed, at most `ms`. */
  #sleep(call: Acquisition<unknown>, ms: number): void {
    call.hasWaited = true;
    this.#announce(call);
    if (call.over) return;
    let cancel: (() => void) | undefined;
    // By a promise, so that the call goes on in its own async context.
    void new Promise<void>((resolve) => {
      if (call.resumed) {
        call.resumed = false;
        return resolve();
      }
      call.wake = resolve;
      if (ms !== Number.POSITIVE_INFINITY) cancel = this.#options.clock.after(ms, () => call.resume());
    }).then(() => {
      cancel?.();
      this.#step(call);
    });
  }

  #try(call: Acquisition<unknown>, coWaiters: CoWaiters): void {
    const survives = call.hasWaited && !call.single;
    call.trying = true;
    const within = survives ? this.#options.commandTimeout : call.within;
    call.attempt(within, coWaiters).then(
      (attempt) => this.#answered(call, attempt),
      (error: unknown) => {
        // To a call that has waited before, silence is a refusal: it goes on when Redis is back.
        const isSilence = isLockError(error, "UNAVAILABLE") || isLockError(error, "QUORUM");
        if (!survives || !isSilence) return this.end(call, error);
        call.stopAwaiting?.();
        // The lock may have been released meanwhile, and the message missed: the late answer makes the call try.
        if (!call.over) call.stopAwaiting = call.whenAnswered(() => call.hint());
        this.#answered(call, NO_ANSWER);
      },
    );
  }

  #answered(call: Acquisition<unknown>, attempt: Attempt<unknown>): void {
    if (call.over) return;
    call.trying = false;
    if (attempt.granted) {
      const { value, lease, remaining, nested, mustRetry } = attempt;
      const ms = Math.min(lease, this.#options.pollCap);
      call.granted = true;
      // With a nested grant the lock was in this process before, so no turn of this process begins.
      if (call.queued && !nested) this.queues.join(call).granted(call, ms, remaining);
      if (mustRetry) this.queues.join(call).retry(mustRetry);
      this.#finish(call);
      call.resolve(value);
    } else if (!call.single) this.#refused(call, attempt);
    else if (attempt.ttl === 0) this.#step(call);
    else this.#refuse(call);
  }

  /** The call is not granted and does not wait: it resolves with undefined. */
  #refuse(call: Acquisition<unknown>): void {
    this.#finish(call);
    call.resolve(undefined);
  }

  #refused(call: Acquisition<unknown>, attempt: Attempt<unknown> & { readonly granted: false }): void {
    const { ttl, mustRetry, others } = attempt;
    if (ttl === 0) {
      if (call.queued) this.queues.join(call).again(call);
      return this.#step(call);
    }
    call.hasWaited = true;
    this.#announce(call);
    if (call.over) return;
    const ms = this.#untilNextTry(ttl);
    const reenters = call.reenters();
    const queue = this.queues.join(call);
    if (!reenters) queue.enter(call, true);
    queue.refused(call, ms, others);
    if (mustRetry) queue.retry(mustRetry);
    // A re-entering call is in no queue, so it sleeps here, or it would try again at once.
    if (reenters) this.#sleep(call, ms);
    else this.#step(call);
  }

  /** Tells that the call waits. A listener may end the call at once. */
  #announce(call: Acquisition<unknown>): void {
    if (call.announced) return;
    call.announced = true;
    call.waitsSince = this.#options.clock.mono();
    this.#options.stir();
    call.waiting();
  }

  #untilNextTry(ttl: number): number {
    const { pollCap, random, exactTimers } = this.#options;
    if (ttl < 0) return pollCap;
    if (exactTimers) return Math.min(pollCap, ttl);
    const jitter = random() * Math.min(ttl / 10, LONGEST_JITTER);
    return Math.min(pollCap, Math.max(SHORTEST_SLEEP, ttl + MARGIN + jitter));
  }

  /** The call is over. The caller resolves or rejects its promise right after. */
  #finish(call: Acquisition<unknown>): void {
    call.over = true;
    call.dispose?.();
    call.stopAwaiting?.();
    if (call.single) this.#single.remove(call);
    else this.queues.end(call);
    call.ended(call.granted);
    // Wakes a sleeping call, which finds that it is over.
    call.wake?.();
  }
}
