/**
 * The wait queues of a client, by name. A queue is made when a try is refused, or when a second call wants the same. It
 * is dropped a moment after its last call.
 */
import type { Clock } from "../base/clock.js";
import { SharedTimeout } from "../base/shared-timeout.js";
import type { Acquisition } from "./acquisition.js";
import { SHORTEST_TURN } from "./handoff-policy.js";
import type { EndCall } from "./listening.js";
import { refreshEvery } from "./tickets.js";
import { WaitQueue } from "./wait-queue.js";

export interface WaitQueuesOptions {
  readonly clock: Clock;
  /** Milliseconds. */
  readonly pollCap: number;
  /** Runs a function outside every scope. */
  readonly outside: (fn: () => void) => void;
  readonly end: EndCall;
}

export class WaitQueues {
  readonly #options: WaitQueuesOptions;
  readonly #queues = new Map<string, WaitQueue>();
  /** Calls without a second one under their name: most are granted by their first try, and never need a queue. */
  readonly #alone = new Map<string, Acquisition<unknown>>();
  /** Empty queues that are kept for a moment: calls that share a lock in a loop come back at once. */
  readonly #kept: SharedTimeout<WaitQueue>;

  constructor(options: WaitQueuesOptions) {
    this.#options = options;
    this.#kept = new SharedTimeout(options.clock, SHORTEST_TURN, options.outside);
  }

  [Symbol.iterator](): Iterator<WaitQueue> {
    return this.#queues.values();
  }

  /**
   * Whether a call is in line in the queue `name`. If so, the queue `behind` tries again when the last of these waiters
   * leaves without a grant; see {@link WaitQueue.whenLeft}.
   */
  hasWaiters(name: string, behind: string): boolean {
    const queue = this.#queues.get(name);
    if (!queue?.first) return false;
    queue.whenLeft = () => this.get(behind)?.hint();
    return true;
  }

  /** Whether there is a queue of this name, or a call that could begin one. */
  has(name: string): boolean {
    return this.#queues.has(name) || this.#alone.has(name);
  }

  /** The queue of this name, if any. A call that was alone joins it, as the first in line if its try is on its way. */
  get(name: string): WaitQueue | undefined {
    const queue = this.#queues.get(name);
    if (queue) return queue;
    const lone = this.#alone.get(name);
    return lone && this.join(lone);
  }

  /** A call begins: it needs no queue as long as it is alone. */
  begin(call: Acquisition<unknown>): void {
    const { queueName } = call;
    const queue = this.get(queueName);
    if (queue) queue.add(call);
    else this.#alone.set(queueName, call);
  }

  /** The queue that a call belongs to. It is made if the call was alone. */
  join(call: Acquisition<unknown>): WaitQueue {
    const { queueName } = call;
    let queue = this.#queues.get(queueName);
    if (call.queued) return queue as WaitQueue;
    this.#alone.delete(queueName);
    queue ??= this.#make(queueName, call);
    queue.add(call);
    if (call.trying && !call.reenters()) queue.enter(call, true);
    return queue;
  }

  /** A call is over. */
  end(call: Acquisition<unknown>): void {
    const { queueName } = call;
    if (!call.queued) {
      this.#alone.delete(queueName);
      return;
    }
    const queue = this.#queues.get(queueName) as WaitQueue;
    queue.remove(call, call.trying);
    this.#forgetIfIdle(queue);
  }

  /** All calls under way. */
  calls(): Acquisition<unknown>[] {
    return [...this.#alone.values(), ...[...this.#queues.values()].flatMap((queue) => queue.all())];
  }

  #make(name: string, { traits }: Acquisition<unknown>): WaitQueue {
    const { clock, pollCap, end } = this.#options;
    const idle = (queue: WaitQueue) => this.#forgetIfIdle(queue);
    const queue = new WaitQueue(
      { name, clock, refreshEvery: refreshEvery(pollCap), kept: this.#kept, idle, end },
      traits.advertised,
    );
    this.#queues.set(name, queue);
    return queue;
  }

  #forgetIfIdle(queue: WaitQueue): void {
    if (queue.calls === 0 && !queue.list) this.#queues.delete(queue.name);
  }
}
