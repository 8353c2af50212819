/** One call in flight that wants something: what the engine asks of it, and what the engine notes about it. */
import type { Item } from "../base/list.js";

/**
 * What a try came to. Granted, `lease` says for how many milliseconds others are kept out unless told, `remaining` how much
 * is left for others at once, if that is counted, and `nested` that the caller's owner had it already. Refused, `ttl` says
 * in how many milliseconds the holder's lease ends: -1 if it has no end, 0 to try again at once.
 */
export type Attempt<G> =
  | {
      readonly granted: true;
      readonly value: G;
      readonly lease: number;
      readonly remaining?: number;
      readonly nested?: boolean;
    }
  /**
   * `mustRetry`: tickets of co-waiters that have to try themselves. `others`: so many outside this process heard of the
   * release, and go first.
   */
  | {
      readonly granted: false;
      readonly ttl: number;
      readonly mustRetry?: readonly string[];
      readonly others?: number;
    };

/** Tickets of other waiters that a try refreshes; undefined for a call that will not wait. */
export type CoWaiters = readonly string[] | undefined;

/** Told of every message on its channel, or that the server forbids to listen. */
export interface Listener {
  hint(): void;
  refused(error: unknown): void;
}

/** How the calls of one wait queue are woken, and what the server knows of them. */
export interface QueueTraits {
  /**
   * The server keeps a queue, too, and wakes each waiter on a channel of its own: each tries once to get a ticket there,
   * and the tries of the first refresh all. Otherwise the first waiter is woken, on a common channel.
   */
  readonly serverQueued: boolean;
  /** The server knows that the first waiter waits: whoever becomes the first tries once, to be known. */
  readonly advertised: boolean;
  /** What one call is granted, the others can be granted as well. */
  readonly shared: boolean;
  /** The command that gives back can grant the first waiter of this process. */
  readonly handoff: boolean;
}

/** What a command that hands a lock over did. */
export interface Passed {
  /** The server's word for the giver. */
  readonly word: number;
  /** Whether the successor has the lock. */
  readonly granted: boolean;
  readonly token?: bigint | undefined;
  /** So many outside the process heard of the release, and are to have it first. */
  readonly others: number;
}

/** See `own` of {@link Successor}. */
export const OTHERS_FIRST = -1;

/** A call that waits in the giver's process, and is granted the lock by the command that gives it back. */
export interface Successor {
  readonly wireId: string;
  /** Milliseconds. */
  readonly lease: number;
  /**
   * Others are asked first: undefined if not, else how many of those who hear of the release are of this process.
   * {@link OTHERS_FIRST}: nobody can be counted, so others go first for sure.
   */
  readonly own: number | undefined;
  /** It has no use for the lock any more: its wire id is over, or about to be. */
  readonly gone: boolean;
  /** The server has said what came of it. */
  readonly settled: boolean;
  /** It said so when the call had given up waiting for that. */
  readonly late: boolean;
  settle(passed: Passed): void;
  /** There is no answer, or none that tells of the successor. */
  silent(): void;
}

/** `G`: what it is granted. A kind of call says how it tries and what it leaves behind; the engine does the waiting. */
export abstract class Acquisition<G> implements Item {
  // Kept by the engine. What is declared only is there once it is needed: most calls never wait.

  /** Among the calls under way, or in its wait queue. */
  declare next: this | undefined;
  declare prev: this | undefined;
  declare list: object | undefined;
  /** It belongs to a wait queue, whether it stands in line there or not. */
  queued = false;
  /** It tries once, past those that wait. */
  single = false;
  /** Milliseconds that a try may take as long as Redis has not answered this call. */
  within = 0;
  /** Redis has answered this call, or it stood behind others: from then on it survives an outage. */
  hasWaited = false;
  /** The `waiting` event was sent. */
  declare announced?: boolean;
  /** When it was, in monotonic milliseconds. */
  declare waitsSince: number;
  /** A try is on its way. */
  trying = false;
  /** A message or another call says that it has to try, whether it is the first of its queue or not. */
  declare hinted?: boolean;
  /** Permits that another's grant left over were promised to it. */
  declare promised?: boolean;
  /** It was granted what it wants. */
  granted = false;
  /** Nobody waits for the result any more. */
  over = false;
  /** Looks again at once what is due; there while the call sleeps. */
  declare wake: (() => void) | undefined;
  /** A {@link resume} that came while it did not sleep: the next sleep is spared. */
  declare resumed?: boolean;
  /** Ends its own subscription, if it has one. */
  declare unsubscribe: (() => void) | undefined;
  /** Ends waiting for an answer that is late, if it does. */
  declare stopAwaiting: (() => void) | undefined;
  /** Takes its time-out, and its listener off its AbortSignal. */
  declare dispose: (() => void) | undefined;
  /** Of its promise, from its beginning on. */
  declare resolve: (value: unknown) => void;
  declare reject: (reason: unknown) => void;

  // What the engine asks.

  abstract readonly lockName: string;
  /** Calls that want the same stand in one queue. */
  abstract readonly queueName: string;
  abstract readonly traits: QueueTraits;
  /** Whether Redis does not answer at the moment. */
  abstract readonly away: boolean;
  /** Tries once. Rejects UNAVAILABLE or QUORUM without an answer within `within` milliseconds. */
  abstract attempt(within: number, coWaiters: CoWaiters): Promise<Attempt<G>>;
  /** Listens to what wakes it, from its first refusal until the returned function is called. */
  abstract listen(listener: Listener): () => void;
  /** The call begins; it is to be resumed whenever {@link admitted} or {@link reenters} may have changed. */
  begun(): void {
    // Most calls are admitted by the server alone.
  }

  /** Told once that the call has to wait. */
  abstract waiting(): void;
  /** The call is over. With `taken` false nobody receives what it was or is granted: it is to be undone. */
  abstract ended(taken: boolean): void;

  /** Calls back once when Redis, which gave no answer in time, gives one after all. Returns the way to stop that. */
  whenAnswered(_callback: () => void): (() => void) | undefined {
    return undefined;
  }

  /** How much it wants of what is counted. */
  get permits(): number {
    return 1;
  }

  /** The name of its place in the server's queue, if it may have one. */
  get ticket(): string | undefined {
    return undefined;
  }

  /** Milliseconds from a message to the try that it calls for. */
  get backoff(): number {
    return 0;
  }

  /** False while it is another's turn (of the same owner). @throws if its turn can never come */
  admitted(): boolean {
    return true;
  }

  /** True if it needs no place in the queue: its owner has the lock already. */
  reenters(): boolean {
    return false;
  }

  /** It is another's turn: what the server keeps of its tries is given up meanwhile. */
  withdraw(): void {
    // Most calls leave nothing with the server that others could trip over.
  }

  /**
   * Takes part in the command by which another gives back the lock that is known by `lockKey`; undefined if it cannot.
   * `own`: see {@link Successor}.
   */
  succeed(_lockKey: string, _own: number | undefined): Successor | undefined {
    return undefined;
  }

  /** What admits it, or when it is due, may have changed. */
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
