/** What redlock rejects with, and what it tells of its attempts. */
import type { RedisConnection } from "../../index.js";

/** An ioredis `Redis` or `Cluster`, of version 5.4 or later or 6. */
export interface RedlockClient extends RedisConnection {
  /** Ends the connection when what was sent is answered. */
  quit(): Promise<unknown>;
  /** Ends the connection at once. */
  disconnect(): void;
}

/** How the clients voted on one attempt. */
export interface ExecutionStats {
  /** How many clients there are. */
  readonly membershipSize: number;
  /** How many clients are a quorum. */
  readonly quorumSize: number;
  /** The clients that granted it, extended it or gave it back, as far as that is known. */
  readonly votesFor: Set<RedlockClient>;
  /** The clients that did not, each with a {@link ResourceLockedError} or with what went wrong there. */
  readonly votesAgainst: Map<RedlockClient, Error>;
}

/**
 * The attempts of a call. Each resolves when all its clients have been heard; none rejects. Waiting for a resource that
 * is locked is one attempt.
 */
export type Attempts = readonly Promise<ExecutionStats>[];

/** What a call that has succeeded tells of its attempts. */
export interface ExecutionResult {
  /** The last attempt succeeded; those before it got no answer. */
  readonly attempts: Attempts;
}

/** A client's vote against: somebody else holds the resource there, or the lock is not held there (any more). */
export class ResourceLockedError extends Error {
  /** `ResourceLockedError`. */
  override readonly name: string = "ResourceLockedError";
}

/** A call found no quorum in time. `cause`: the LockError behind it, where there is one. */
export class ExecutionError extends Error {
  /** `ExecutionError`. */
  override readonly name: string = "ExecutionError";
  /** The attempts, which all failed. */
  readonly attempts: Attempts;

  constructor(message: string, attempts: Attempts, options?: { cause?: unknown }) {
    super(message, options);
    this.attempts = attempts;
  }
}
