/** The interfaces of the standard, as `lib.dom.d.ts` has them too. */

/** The modes of browsers: shared requests of a name are granted together, an exclusive one alone. */
export type LockMode = "exclusive" | "shared";

/** The lock that a callback gets. It stays readable when the lock is over. */
export interface Lock {
  /** The name as it was requested: without the client's prefix. */
  readonly name: string;
  /** The mode as it was requested. */
  readonly mode: LockMode;
}

/** Called when the lock is granted; with null if `ifAvailable` was set and it is not free. */
export type LockGrantedCallback<T> = (lock: Lock | null) => T;

/** Options of {@link LockManager.request}. Others are ignored, as in browsers. */
export interface LockOptions {
  /** Default `exclusive`. */
  mode?: LockMode | undefined;
  /** Calls back with null instead of waiting. Default false. */
  ifAvailable?: boolean | undefined;
  /** Takes the lock from its holders, before all waiters. Default false. */
  steal?: boolean | undefined;
  /** Ends the wait, with its reason; once the callback is called it changes nothing. */
  signal?: AbortSignal | undefined;
}

/** A lock that is held, or a request that waits. */
export interface LockInfo {
  /** The name, without the client's prefix. */
  readonly name: string;
  /** The mode; absent if another process does not tell which one it waits for. */
  readonly mode?: LockMode;
  /** `client.id` of the process that holds the lock, or waits. */
  readonly clientId: string;
}

/** What {@link LockManager.query} saw. */
export interface LockManagerSnapshot {
  /** The locks of this process first, in the order of their grants. */
  readonly held: LockInfo[];
  /** The requests of this process first: by name, in the order in which they will be granted. */
  readonly pending: LockInfo[];
}

/** What `navigator.locks` is in browsers. */
export interface LockManager {
  /**
   * Calls back as soon as the lock is granted and gives it back when what the callback returned has
   * settled; resolves or rejects with that. Never re-entrant: a callback that requests its own lock waits
   * for itself.
   * @throws an AbortError (`DOMException`) as soon as the lock is stolen or lost otherwise; its `cause` is the
   * LockLostError
   * @throws the signal's reason if that aborts first
   * @throws NotSupportedError (`DOMException`) for a name that begins with "-", and for options that
   * exclude each other
   * @throws TypeError, RangeError for wrong arguments; UNAVAILABLE, UNSUPPORTED, WRONG_DATA, REPLICAS,
   * CLIENT_CLOSED as `lock()`
   */
  request<T>(name: string, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  /** As above. */
  request<T>(name: string, options: LockOptions, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  /**
   * What this process holds and waits for, by its own knowledge, and what other processes do, as far as that is known.
   * @throws UNAVAILABLE, UNSUPPORTED, CLIENT_CLOSED as `client.list()`
   */
  query(): Promise<LockManagerSnapshot>;
}
