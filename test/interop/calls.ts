/** The calls that both sides have, with one interface, and what both know. Times are milliseconds; without a lease the watchdog renews. */

/** Milliseconds, longer than any test: a waiter that only this time would wake fails. */
export const NEVER = 60_000;

/** An exception of Java. */
export class JavaError extends Error {
  override readonly name = "JavaError";
  /** The full name of its class. */
  readonly javaClass: string;

  constructor(javaClass: string, message: string) {
    super(`${javaClass}: ${message}`);
    this.javaClass = javaClass;
  }
}

export type LockKind = "lock" | "fair" | "fenced" | "read" | "write" | "spin" | "nonReentrant";

export interface LockCalls {
  lock(lease?: number): Promise<unknown>;
  tryLock(wait?: number, lease?: number): Promise<boolean>;
  /** Gives back the innermost hold. */
  unlock(): Promise<unknown>;
  forceUnlock(): Promise<boolean>;
  isLocked(): Promise<boolean>;
  getHoldCount(): Promise<number>;
  remainTimeToLive(): Promise<number>;
}

export interface SemaphoreCalls {
  trySetPermits(permits: number): Promise<boolean>;
  acquire(permits?: number): Promise<unknown>;
  tryAcquire(permits?: number, wait?: number): Promise<boolean>;
  release(permits?: number): Promise<unknown>;
  addPermits(permits: number): Promise<unknown>;
  availablePermits(): Promise<number>;
  drainPermits(): Promise<number>;
}

export interface PermitsCalls {
  trySetPermits(permits: number): Promise<boolean>;
  setPermits(permits: number): Promise<unknown>;
  addPermits(permits: number): Promise<unknown>;
  acquire(lease?: number): Promise<string>;
  tryAcquire(wait?: number, lease?: number): Promise<string | null>;
  release(permitId: string): Promise<unknown>;
  tryRelease(permitId: string): Promise<boolean>;
  updateLeaseTime(permitId: string, lease: number): Promise<boolean>;
  availablePermits(): Promise<number>;
  acquiredPermits(): Promise<number>;
  getPermits(): Promise<number>;
}

export interface LatchCalls {
  trySetCount(count: number): Promise<boolean>;
  countDown(): Promise<unknown>;
  await(wait?: number): Promise<boolean>;
  getCount(): Promise<number>;
}

export type Subject = "lock" | "semaphore" | "permits" | "latch";

/** The calls of each, with what their arguments are called, in their order. */
const SIGNATURES: Readonly<Record<Subject, string>> = {
  lock: "lock(lease) tryLock(wait,lease) unlock forceUnlock isLocked isHeldByCurrentThread getHoldCount remainTimeToLive lockAndGetToken getToken",
  semaphore:
    "trySetPermits(permits) acquire(permits) tryAcquire(permits,wait) release(permits) addPermits(permits) availablePermits drainPermits",
  permits:
    "trySetPermits(permits) setPermits(permits) addPermits(permits) acquire(lease) tryAcquire(wait,lease) release(permitId) tryRelease(permitId) updateLeaseTime(permitId,lease) availablePermits acquiredPermits getPermits",
  latch: "trySetCount(count) countDown await(wait) getCount delete",
};

/** The names of the arguments by the name of the call. */
export function argumentsOf(subject: Subject): Record<string, readonly string[]> {
  const calls = SIGNATURES[subject].split(" ").map((each) => {
    const [call = "", names] = each.replace(")", "").split("(");
    return [call, names?.split(",") ?? []] as const;
  });
  return Object.fromEntries(calls);
}
