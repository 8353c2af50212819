/** One call in flight: what the engine asks of it, and what the engine notes about it. */
import type { Item } from "../base/list.js";

/**
 * The outcome of a try. Granted: `lease` is for how many milliseconds no waiter has to try without a message; `remaining`,
 * of a counter, how much of it is free for other calls; `nested`, that the owner had the lock already. Refused: `ttl` is in
 * how many milliseconds the holder's lease ends; -1: never, 0: the call has to try again at once. `mustRetry`: tickets of
 * co-waiters that have to try themselves.
 */
export type Attempt<G> =
  | {
      readonly granted: true;
      readonly value: G;
      readonly lease: number;
      readonly remaining?: number;
      readonly nested?: boolean;
      readonly mustRetry?: readonly string[] | undefined;
    }
  /** `others`: how many subscribers outside this process heard of the release, and go first. */
  | {
      readonly granted: false;
      readonly ttl: number;
      readonly mustRetry?: readonly string[] | undefined;
      readonly others?: number;
    };

/** Tickets of other waiters that a try refreshes; undefined for a call that will not wait. */
export type CoWaiters = readonly string[] | undefined;

/** Hears every message on its channel, or that the server forbids to subscribe. */
export interface Listener {
  hint(): void;
  refused(error: unknown): void;
}

/** How the calls of one wait queue are woken, and what the server knows of them. */
export interface QueueTraits {
  /**
   * The server keeps a queue too, and wakes each waiter on a channel of its own: each waiter tries once to get a ticket
   * there, and the first waiter's tries refresh all tickets. Without it the first waiter is woken, on a common channel.
   */
  readonly serverQueued: boolean;
  /** The server has to know the first waiter of each process: a call that becomes the first tries once. */
  readonly advertised: boolean;
  /** Several calls can be granted the same at once, as readers are; so sibling runs of an owner share a turn. */
  readonly shared: boolean;
  /** The release command can grant the lock to the first waiter of this process. */
  readonly handoff: boolean;
}

/** What a command that hands a lock over has done. */
export interface Passed {
  /** The server's answer to the releasing call. */
  readonly word: number;
  /** Whether the successor has the lock. */
  readonly granted: boolean;
  readonly token?: bigint | undefined;
  /** How many subscribers outside this process heard of the release, and go first. */
  readonly others: number;
}

/** See `own` of {@link Successor}. */
export const OTHERS_FIRST = -1;

/** A waiting call of the releasing process, which the release command itself grants the lock. */
export interface Successor {
  readonly wireId: string;
  /** Milliseconds. */
  readonly lease: number;
  /**
   * Undefined: the successor is granted at once. Else it is granted only if no other process hears of the release, and this
   * is how many subscribers belong to this process. {@link OTHERS_FIRST}: they cannot be counted, so others go first.
   */
  readonly own: number | undefined;
  /** The call does not want the lock any more: its wire id is over, or about to be. */
  readonly gone: boolean;
  /** The server has answered. */
  readonly settled: boolean;
  /** The answer came after the call had given up waiting for it. */
  readonly late: boolean;
  settle(passed: Passed): void;
  /** There is no answer, or the answer does not tell of the successor. */
  silent(): void;
}

/** A kind of call says how it tries and how its tries are undone; the engine does the waiting. `G`: what it is granted. */
export abstract class Acquisition<G> implements Item {
  // Kept by the engine. `declare` makes no field until it is set: most calls never wait.

  /** Its place in the list of the calls under way, or of its wait queue. */
  declare next: this | undefined;
  declare prev: this | undefined;
  declare list: object | undefined;
  /** The call belongs to a wait queue, whether it stands in line there or not. */
  queued = false;
  /** The call tries once, ahead of the waiting calls. */
  single = false;
  /** Milliseconds that a try may take until Redis has answered this call once. */
  within = 0;
  /** Redis has answered this call, or the call stood behind others: from then on an outage does not end it. */
  hasWaited = false;
  /** The `waiting` event was sent. */
  declare announced?: boolean;
  /** When the `waiting` event was sent, in monotonic milliseconds. */
  declare waitsSince: number;
  /** A try is on its way. */
  trying = false;
  /** A message or another call demands a try, whether this call is the first of its queue or not. */
  declare hinted?: boolean;
  /** Permits that another call's grant left over were promised to this call. */
  declare promised?: boolean;
  /** The call was granted. */
  granted = false;
  /** The call has ended. */
  over = false;
  /** Ends the call's sleep; there while it sleeps. */
  declare wake: (() => void) | undefined;
  /** A {@link resume} came while the call did not sleep: its next sleep ends at once. */
  declare resumed?: boolean;
  /** Ends the call's own subscription, if it has one. */
  declare unsubscribe: (() => void) | undefined;
  /** Stops waiting for a late answer. */
  declare stopAwaiting: (() => void) | undefined;
  /** Cancels the call's timer and removes its listener from the AbortSignal. */
  declare dispose: (() => void) | undefined;
  /** Settle the call's promise. */
  declare resolve: (value: unknown) => void;
  declare reject: (reason: unknown) => void;

  // What the engine asks of each kind of call.

  abstract readonly lockName: string;
  /** Calls with the same name stand in one queue. */
  abstract readonly queueName: string;
  abstract readonly traits: QueueTraits;
  /** Whether Redis does not answer at the moment. */
  abstract readonly away: boolean;
  /** Tries once. Rejects UNAVAILABLE or QUORUM if no answer comes within `within` milliseconds. */
  abstract attempt(within: number, coWaiters: CoWaiters): Promise<Attempt<G>>;
  /** Subscribes to the call's channel, from its first refusal until the returned function is called. */
  abstract listen(listener: Listener): () => void;
  /** The call begins. From now on it has to be resumed whenever {@link admitted} or {@link reenters} may have changed. */
  begun(): void {
    // Most calls are admitted by the server alone, so nothing changes.
  }

  /** Told once that the call has to wait. */
  abstract waiting(): void;
  /** The call is over. With `taken` false nobody receives its grant, so whatever it got or may get has to be undone. */
  abstract ended(taken: boolean): void;

  /** Calls back once when Redis, which gave no answer in time, gives one after all. Returns the way to stop that. */
  whenAnswered(_callback: () => void): (() => void) | undefined {
    return undefined;
  }

  /** How much of a counter the call wants. */
  get permits(): number {
    return 1;
  }

  /** Names the call's place in the server's queue, if it may have one. */
  get ticket(): string | undefined {
    return undefined;
  }

  /** Milliseconds between a message and the try that follows it. */
  get backoff(): number {
    return 0;
  }

  /** False while another call of the same owner has its turn. @throws if this call's turn can never come */
  admitted(): boolean {
    return true;
  }

  /** True if the owner has the lock already, so that the call needs no place in the queue. */
  reenters(): boolean {
    return false;
  }

  /** Another call has its turn: gives up meanwhile what the server keeps of this call's tries. */
  withdraw(): void {
    // Most calls leave nothing on the server that could keep others out.
  }

  /**
   * Makes this call the successor in the release of the lock `lockKey` by another call; undefined if it cannot be.
   * `own`: see {@link Successor}.
   */
  succeed(_lockKey: string, _own: number | undefined): Successor | undefined {
    return undefined;
  }

  /** Whether the call is admitted, or when its next try is due, may have changed. */
  resume(): void {
    const { wake } = this;
    this.wake = undefined;
    if (wake) wake();
    else this.resumed = true;
  }

  /** A try is due. */
  hint(): void {
    this.hinted = true;
    this.resume();
  }
}
