/** What the engine has to know of a call that wants something. */
import type { Wait } from "./wait.js";

/**
 * What a try came to. `lease`: ms for which others are kept out by it, unless told; `beside`: how much is left for others
 * at once, if that is counted. `ttl`: ms until the holder's lease ends, -1 if it has no end, 0 to try again at once.
 */
export type Attempt<G> =
  | { readonly granted: true; readonly value: G; readonly lease: number; readonly beside?: number }
  /**
   * `overlooked`: places of fellows that should try themselves. `others`: so many outside this process heard of the
   * release, and go first.
   */
  | {
      readonly granted: false;
      readonly ttl: number;
      readonly overlooked?: readonly string[];
      readonly others?: number;
    };

/** Places of fellow waiters that a try refreshes; undefined for a call that will not wait. */
export type Fellows = readonly string[] | undefined;

/** Told of every hint that something may have changed, or that the server forbids to listen. */
export interface Listener {
  hint(): void;
  refused(error: unknown): void;
}

/** How the waiters of one line are woken, and what the server keeps of them. */
export interface Standing {
  /**
   * The server keeps a place for each and wakes each on a channel of its own: each tries once to get it, and the first
   * one's tries refresh all. Else the first is woken, on a common channel.
   */
  readonly places: boolean;
  /** The server knows that the first one waits: who becomes the first tries once, to be known. */
  readonly marked: boolean;
  /** What one is granted, the others can be granted beside it. */
  readonly together: boolean;
  /** What one of this process gives back, the first can be granted by the same command; see {@link Engine.handOver}. */
  readonly passed: boolean;
}

/** One call that wants something, as the engine sees it. */
export interface Contender<G> {
  readonly lockName: string;
  /** Those who want the same stand in one line. */
  readonly line: string;
  readonly standing: Standing;
  /** How much it wants of what can be shared out: 1 if that is not counted. */
  readonly share: number;
  /** The name of its place with the server, if it may have one. */
  readonly place: string | undefined;
  /** Milliseconds from a hint to the try that it calls for. */
  readonly pause: number;
  /** Whether Redis does not answer at the moment. */
  readonly away: boolean;
  /** Listens to what wakes it, after its first try, until the returned function is called. */
  listen(listener: Listener): () => void;
  /** False while it is another's turn (of the same owner). @throws if its turn can never come */
  admitted(): boolean;
  /** True if it needs no place in the line: its owner has the lock already. */
  reenters(): boolean;
  /** Tries once. Rejects UNAVAILABLE or QUORUM without an answer within `within` milliseconds. */
  attempt(within: number, fellows: Fellows): Promise<Attempt<G>>;
  /** The call begins; its wait is to be resumed whenever `admitted` or `reenters` may have changed. */
  enter(wait: Wait): void;
  /** The call has to wait; called once. */
  waiting(): void;
  /** It is another's turn: a place with the server is given up meanwhile. */
  withdraw(): void;
  /** The call is over. With `taken` false nobody receives what it was or is granted: it is to be undone. */
  leave(taken: boolean): void;
}
