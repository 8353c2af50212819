/** Redisson's objects as the driver offers them. Times are milliseconds; numbers that may be large are text. */
import { until } from "../support/index.js";
import type { Answer, Driver } from "./jvm.js";

export type LockKind = "lock" | "fair" | "fenced" | "read" | "write" | "spin" | "nonReentrant";

export interface JavaOptions {
  /** The address of a single server. */
  readonly url?: string;
  /** The addresses of a cluster's nodes. */
  readonly nodes?: readonly string[];
  /** The addresses of sentinels; `master` is the name of their master. */
  readonly sentinels?: readonly string[];
  readonly master?: string;
  /** Whether all other settings are Redisson's own. */
  readonly asItComes?: boolean;
  /** Redisson's lockWatchdogTimeout. Default its own, 30 000. */
  readonly watchdog?: number;
  /** Redisson's fairLockWaitTimeout. Default its own, 300 000. */
  readonly fairWait?: number;
  /** Redisson's shardedSubscriptionMode. Default AUTO. */
  readonly sharded?: "AUTO" | "ON" | "OFF";
}

type Arguments = Readonly<Record<string, unknown>>;

let lastClient = 0;

/** One RedissonClient; a driver can have any number of them. */
export class JavaClient {
  /** Redisson's id of the client, the first part of its owners. */
  readonly id: string;
  /** The name in the calls to its JVM. */
  readonly name: string;
  readonly #jvm: Driver;

  private constructor(jvm: Driver, name: string, id: string) {
    this.#jvm = jvm;
    this.name = name;
    this.id = id;
  }

  static async connect(jvm: Driver, options: JavaOptions): Promise<JavaClient> {
    const name = `client-${++lastClient}`;
    const { value } = await jvm.call<string>({ client: name, op: "connect", ...options });
    return new JavaClient(jvm, name, value);
  }

  /** A thread of that name, made at its first use; to Redisson a thread is an owner. */
  async thread(name: string): Promise<JavaThread> {
    const call = (rest: Arguments) => this.#jvm.call({ client: this.name, thread: name, ...rest });
    const { value } = await call({ op: "threadId" });
    return new JavaThread(`${this.id}:${String(value)}`, call);
  }

  /** Makes a call about the client as a whole. */
  async call<T>(call: Arguments): Promise<T> {
    return (await this.#jvm.call<T>({ client: this.name, thread: "client", ...call })).value;
  }

  async close(): Promise<void> {
    await this.#jvm.call({ client: this.name, thread: "shutdown", op: "shutdown" });
  }
}

type Call = (call: Arguments) => Promise<Answer<unknown>>;

/** A thread that makes one call after the other. */
export class JavaThread {
  /** The owner's name in Redis. */
  readonly owner: string;
  readonly #call: Call;

  constructor(owner: string, call: Call) {
    this.owner = owner;
    this.#call = call;
  }

  lock(kind: LockKind, name: string): JavaLock {
    return new JavaLock(this.#call, { kind, name });
  }

  multiLock(...members: { kind: LockKind; name: string }[]): JavaLock {
    return new JavaLock(this.#call, { kind: "multi", members });
  }

  semaphore(name: string): JavaSemaphore {
    return new JavaSemaphore(this.#call, { kind: "semaphore", name });
  }

  permits(name: string): JavaPermits {
    return new JavaPermits(this.#call, { kind: "permits", name });
  }

  latch(name: string): JavaLatch {
    return new JavaLatch(this.#call, { kind: "latch", name });
  }

  /** Whether the thread waits for a message. A thread that is about to wait does not hear Redisson's "wake all". */
  async isAsleep(): Promise<boolean> {
    return (await this.#call({ op: "isAsleep" })).value === true;
  }

  /** Interrupts the thread's wait once it sleeps, because an earlier interrupt makes Redisson fail in another way. */
  async interrupt(): Promise<void> {
    await until("it sleeps", () => this.isAsleep());
    await this.#call({ op: "interrupt" });
  }
}

class JavaObject {
  readonly #call: Call;
  readonly #subject: Arguments;

  constructor(call: Call, subject: Arguments) {
    this.#call = call;
    this.#subject = subject;
  }

  /** The result, with the time at which the call ended in the JVM. */
  timed<T>(op: string, args: Arguments = {}): Promise<Answer<T>> {
    return this.#call({ ...this.#subject, op, ...args }) as Promise<Answer<T>>;
  }

  protected async perform<T>(op: string, args: Arguments = {}): Promise<T> {
    return (await this.timed<T>(op, args)).value;
  }
}

/** An RLock. Without a lease the watchdog renews. */
export class JavaLock extends JavaObject {
  /** Waits; can be interrupted. */
  lock(lease?: number): Promise<null> {
    return this.perform("lock", { lease });
  }

  tryLock(wait?: number, lease?: number): Promise<boolean> {
    return this.perform("tryLock", { wait, lease });
  }

  unlock(): Promise<null> {
    return this.perform("unlock");
  }

  forceUnlock(): Promise<boolean> {
    return this.perform("forceUnlock");
  }

  isLocked(): Promise<boolean> {
    return this.perform("isLocked");
  }

  isHeldByCurrentThread(): Promise<boolean> {
    return this.perform("isHeldByCurrentThread");
  }

  getHoldCount(): Promise<number> {
    return this.perform("getHoldCount");
  }

  remainTimeToLive(): Promise<number> {
    return this.perform("remainTimeToLive");
  }

  /** Only for a fenced lock. */
  async lockAndGetToken(): Promise<bigint> {
    return BigInt(await this.perform<string>("lockAndGetToken"));
  }

  /** Only for a fenced lock; null if it was not free. */
  async tryLockAndGetToken(wait?: number, lease?: number): Promise<bigint | null> {
    const token = await this.perform<string | null>("tryLockAndGetToken", { wait, lease });
    return token === null ? null : BigInt(token);
  }

  /** Only for a fenced lock: the last token that was given out. */
  async getToken(): Promise<bigint> {
    return BigInt(await this.perform<string>("getToken"));
  }
}

export class JavaSemaphore extends JavaObject {
  trySetPermits(permits: number): Promise<boolean> {
    return this.perform("trySetPermits", { permits });
  }

  acquire(permits = 1): Promise<null> {
    return this.perform("acquire", { permits });
  }

  tryAcquire(permits = 1, wait?: number): Promise<boolean> {
    return this.perform("tryAcquire", { permits, wait });
  }

  release(permits = 1): Promise<null> {
    return this.perform("release", { permits });
  }

  addPermits(permits: number): Promise<null> {
    return this.perform("addPermits", { permits });
  }

  availablePermits(): Promise<number> {
    return this.perform("availablePermits");
  }

  drainPermits(): Promise<number> {
    return this.perform("drainPermits");
  }
}

export class JavaPermits extends JavaObject {
  trySetPermits(permits: number): Promise<boolean> {
    return this.perform("trySetPermits", { permits });
  }

  setPermits(permits: number): Promise<null> {
    return this.perform("setPermits", { permits });
  }

  addPermits(permits: number): Promise<null> {
    return this.perform("addPermits", { permits });
  }

  /** Resolves with the id; a permit without a lease never ends. */
  acquire(lease?: number): Promise<string> {
    return this.perform("acquire", { lease });
  }

  tryAcquire(wait?: number, lease?: number): Promise<string | null> {
    return this.perform("tryAcquire", { wait, lease });
  }

  release(permitId: string): Promise<null> {
    return this.perform("release", { permitId });
  }

  tryRelease(permitId: string): Promise<boolean> {
    return this.perform("tryRelease", { permitId });
  }

  updateLeaseTime(permitId: string, lease: number): Promise<boolean> {
    return this.perform("updateLeaseTime", { permitId, lease });
  }

  availablePermits(): Promise<number> {
    return this.perform("availablePermits");
  }

  acquiredPermits(): Promise<number> {
    return this.perform("acquiredPermits");
  }

  getPermits(): Promise<number> {
    return this.perform("getPermits");
  }
}

export class JavaLatch extends JavaObject {
  trySetCount(count: number): Promise<boolean> {
    return this.perform("trySetCount", { count });
  }

  countDown(): Promise<null> {
    return this.perform("countDown");
  }

  /** Without `wait` it waits for ever. */
  await(wait?: number): Promise<boolean> {
    return this.perform("await", { wait });
  }

  getCount(): Promise<number> {
    return this.perform("getCount");
  }

  delete(): Promise<boolean> {
    return this.perform("delete");
  }
}
