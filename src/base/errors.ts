/**
 * Every error a user can meet. Owns the codes and their texts; knows nothing of Redis or of waiting.
 * Errors are recognised by a brand, not by `instanceof`, so that a process with an ESM and a CJS copy works.
 */

/** What went wrong; see the table in the guide for cause and cure of each. */
export type LockErrorCode =
  | "WAIT_TIMEOUT"
  | "NOT_OWNER"
  | "LOCK_LOST"
  | "UPGRADE_REFUSED"
  | "QUORUM"
  | "REPLICAS"
  | "UNAVAILABLE"
  | "CLIENT_CLOSED"
  | "UNSUPPORTED"
  | "WRONG_DATA";

/**
 * How a hold was lost, as far as that is known. `forced`: this client used force. `taken`: another holds the lock now.
 * `expired`: the lease ended or the key is gone. `unreachable`: Redis gave no answer until the deadline. `closed`: the
 * client was closed.
 */
export type LossReason = "forced" | "taken" | "expired" | "unreachable" | "closed";

const BRAND = Symbol.for("holdfast.LockError");

/** The beginning of an error's text; empty for a call on the client as a whole, which has no lock. */
function about(lockName: string): string {
  return lockName ? `lock "${lockName}": ` : "";
}

/** What all errors have in common. Users see it as {@link LockError}. */
class LockErrorBase<C extends LockErrorCode> extends Error {
  /** What happened; each class has its own, so a `switch` narrows. */
  readonly code: C;
  /** The name of what the call was for, without the prefix. Of a group: the group's, or that of the member that failed. */
  readonly lockName: string;
  /** What each member failed with, if the call was for a group of locks. */
  declare readonly errors?: unknown[];

  static {
    // The class is exported by this name; messages such as Jest's "Expected constructor" show it.
    Object.defineProperty(LockErrorBase, "name", { value: "LockError" });
  }

  constructor(code: C, lockName: string, message: string, cause?: unknown) {
    super(`${message}. See docs/guide.md#${code.toLowerCase()}`, cause === undefined ? {} : { cause });
    this.name = new.target.name;
    this.code = code;
    this.lockName = lockName;
    Object.defineProperty(this, BRAND, { value: true });
  }
}

const WAIT_CURE = "wait longer, or try again later";
const RIGHTS_CURE = "give the user the rights in docs/guide.md#rights";

interface TimeoutTexts {
  readonly what?: string;
  readonly cure?: string;
  readonly holder?: string | undefined;
}

/** `run`, or `lock` with a `wait`, ran out of time. `waited`: milliseconds. */
export class LockTimeoutError extends LockErrorBase<"WAIT_TIMEOUT"> {
  /** Milliseconds from the call to its end. */
  readonly waited: number;

  /** `what`: what was not free, or too few; `cure`: what to do; `holder`: who holds the lock, if that is known. */
  constructor(
    lockName: string,
    waited: number,
    { what = `lock "${lockName}" was not free`, cure = WAIT_CURE, holder }: TimeoutTexts = {},
  ) {
    const held = holder === undefined ? "" : `; held by ${holder}`;
    super("WAIT_TIMEOUT", lockName, `${what} within ${Math.round(waited)} ms${held}; ${cure}`);
    this.waited = waited;
  }
}

/** An owner that does not hold the lock tried to unlock it; never used for a lost hold. */
export class LockNotOwnerError extends LockErrorBase<"NOT_OWNER"> {
  constructor(lockName: string, message: string) {
    super("NOT_OWNER", lockName, message);
  }
}

const LOSSES: Record<LossReason, string> = {
  forced: "this process released it by force",
  taken: "another holds it now",
  expired: "its lease ended, or its key is gone (forced from elsewhere, deleted or evicted)",
  unreachable: "Redis gave no answer, or only refusals, until its lease ended",
  closed: "the client was closed",
};

const LOST_CURE = "another may have had it meanwhile, so check the work";

/** The hold ended before its unlock. `since`: epoch milliseconds; `result`: of the `run`; `what`: the text if it was no loss. */
export class LockLostError extends LockErrorBase<"LOCK_LOST"> {
  /** Why it was lost, as far as that is known. */
  readonly reason: LossReason;
  /** From when on others may have had the lock, in epoch milliseconds: its deadline, or when it was last known to be held. */
  readonly since: number;
  /** What the function of a `run` returned. */
  readonly result?: unknown;

  constructor(
    lockName: string,
    reason: LossReason,
    since: number,
    result?: { value: unknown },
    what?: string,
  ) {
    super("LOCK_LOST", lockName, what ?? `lock "${lockName}" was lost: ${LOSSES[reason]}; ${LOST_CURE}`);
    this.reason = reason;
    this.since = since;
    if (result) this.result = result.value;
  }
}

/** The write side was asked for by an owner that holds only the read side. */
export class LockUpgradeError extends LockErrorBase<"UPGRADE_REFUSED"> {
  constructor(lockName: string) {
    super(
      "UPGRADE_REFUSED",
      lockName,
      `${about(lockName)}a reader cannot get the write side; give the read side back first`,
    );
  }
}

/** Too few masters of a RedLock answered: no majority for a grant, or not enough answers to decide a question. */
export class QuorumError extends LockErrorBase<"QUORUM"> {
  /** How many masters were in favour. */
  readonly votes: number;
  override readonly errors: unknown[];

  constructor(lockName: string, votes: number, members: number, errors: readonly unknown[]) {
    super(
      "QUORUM",
      lockName,
      `${about(lockName)}too few of the ${members} masters answered in time (${votes} in favour); see \`errors\`; bring the masters back, or try again later`,
    );
    this.votes = votes;
    this.errors = [...errors];
  }
}

/** Fewer replicas than `replicas` acknowledged the grant, which was undone. */
export class ReplicationError extends LockErrorBase<"REPLICAS"> {
  /** How many replicas acknowledged the grant in time. */
  readonly acknowledged: number;
  /** The option `replicas`. */
  readonly required: number;

  constructor(lockName: string, acknowledged: number, required: number) {
    super(
      "REPLICAS",
      lockName,
      `${about(lockName)}${acknowledged} of ${required} required replicas acknowledged the grant, which was undone; look at the replicas and their lag`,
    );
    this.acknowledged = acknowledged;
    this.required = required;
  }
}

/** Redis gave no usable answer in time. The client gives back what a late answer grants. */
export class RedisUnavailableError extends LockErrorBase<"UNAVAILABLE"> {
  constructor(lockName: string, cause?: unknown) {
    const why = cause instanceof Error ? `: ${cause.message}` : "";
    super(
      "UNAVAILABLE",
      lockName,
      `${about(lockName)}no usable answer from Redis in time${why}; try again later; the client gives back what a late answer grants`,
      cause,
    );
  }
}

/** The client was closed before or during the call. */
export class ClientClosedError extends LockErrorBase<"CLIENT_CLOSED"> {
  constructor(lockName: string) {
    super(
      "CLIENT_CLOSED",
      lockName,
      `${about(lockName)}the client is closed; end the work before close(), or make a new client`,
    );
  }
}

/** A holder in this process, in a WAIT_TIMEOUT's words. */
export const THIS_PROCESS = "this process itself";

/** The server is too old, or lacks or forbids a command; the text says which. */
export class UnsupportedServerError extends LockErrorBase<"UNSUPPORTED"> {
  /** `cure`: what to do; by default, to give the user the missing rights. */
  constructor(lockName: string, what: string, cause?: unknown, cure: string = RIGHTS_CURE) {
    super("UNSUPPORTED", lockName, `${about(lockName)}${what}; ${cure}`, cause);
  }
}

/** The lock's key holds other data, which was left unchanged. The text contains that of Redis. */
export class WrongDataError extends LockErrorBase<"WRONG_DATA"> {
  constructor(lockName: string, cause: Error) {
    super(
      "WRONG_DATA",
      lockName,
      `${about(lockName)}its key holds other data, which was left alone: ${cause.message}; use another name, or the client option prefix`,
      cause,
    );
  }
}

/** The class of each code. */
interface LockErrorByCode {
  WAIT_TIMEOUT: LockTimeoutError;
  NOT_OWNER: LockNotOwnerError;
  LOCK_LOST: LockLostError;
  UPGRADE_REFUSED: LockUpgradeError;
  QUORUM: QuorumError;
  REPLICAS: ReplicationError;
  UNAVAILABLE: RedisUnavailableError;
  CLIENT_CLOSED: ClientClosedError;
  UNSUPPORTED: UnsupportedServerError;
  WRONG_DATA: WrongDataError;
}

/** Any error of this library: `switch (error.code)` narrows it to the class. Test with {@link isLockError}. */
export type LockError = LockErrorByCode[LockErrorCode];

/** The base class of all errors. The compiler takes `instanceof` of it for any of them: nothing else has this base. */
export const LockError: (abstract new (...args: never) => LockError) & { readonly prototype: LockError } =
  LockErrorBase as never;

/**
 * True for an error of this library, or of another copy of it in the process; with `code`, only for an error of that
 * code.
 * @example
 * try {
 *   await client.getLock("stock:42").run(() => sell("42"), { wait: 500 });
 * } catch (error) {
 *   if (!isLockError(error, "WAIT_TIMEOUT")) throw error;
 * }
 */
export function isLockError<C extends LockErrorCode = LockErrorCode>(
  error: unknown,
  code?: C,
): error is LockErrorByCode[C] {
  if (typeof error !== "object" || error === null || !(BRAND in error)) return false;
  return code === undefined || (error as { code?: unknown }).code === code;
}

/**
 * Throws the error again, with the frames of the awaiting functions at the end of its stack. It is for the `catch` of a
 * promise that a user awaits. The frames cost nothing until something fails.
 */
export function tellCaller(error: unknown): never {
  if (isLockError(error)) {
    const here: { stack?: unknown } = {};
    Error.captureStackTrace(here, tellCaller);
    const frames = /\n\s+at .*/s.exec(String(here.stack))?.[0];
    // Several calls may reject with the same error, and one call several times: the same frames are added only once.
    if (frames && !error.stack?.includes(frames)) error.stack = `${error.stack}${frames}`;
  }
  throw error;
}

/**
 * What the promise of a user is resolved with, so that it rejects with this error and {@link tellCaller} finds who awaits
 * it. Calls that succeed then need no further promise.
 */
export function failure(error: unknown): Promise<never> {
  // By the second rejection the user's promise follows this one.
  return Promise.reject(error).catch(rethrow).catch(tellCaller);
}

function rethrow(error: unknown): never {
  throw error;
}
