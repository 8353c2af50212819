/** Redisson's objects as the driver offers them. Times are milliseconds, numbers that may be large are text. */
import { until } from "../support/index.js";
import type { Answer, Jvm } from "./jvm.js";

export type LockKind = "lock" | "fair" | "fenced" | "read" | "write" | "spin" | "nonReentrant";

export interface JavaOptions {
  /** Of a server on its own. */
  readonly url?: string;
  /** Addresses of a cluster. */
  readonly nodes?: readonly string[];
  /** Addresses of sentinels, with the name of their master. */
  readonly sentinels?: readonly string[];
  readonly master?: string;
  /** With Redisson's own settings for all that is not told here. */
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

/** One RedissonClient; any number of them fit in a JVM. */
export class JavaClient {
  /** Redisson's, the first part of its owners. */
  readonly id: string;
  /** In the calls of its JVM. */
  readonly name: string;
  readonly #jvm: Jvm;

  private constructor(jvm: Jvm, name: string, id: string) {
    this.#jvm = jvm;
    this.name = name;
    this.id = id;
  }

  static async connect(jvm: Jvm, options: JavaOptions): Promise<JavaClient> {
    const name = `client-${++lastClient}`;
    const { value } = await jvm.call<string>({ client: name, op: "connect", ...options });
    return new JavaClient(jvm, name, value);
  }

  /** A thread of that name, made at its first use: to Redisson an owner. */
  async thread(name: string): Promise<JavaThread> {
    const call = (rest: Arguments) => this.#jvm.call({ client: this.name, thread: name, ...rest });
    const { value } = await call({ op: "threadId" });
    return new JavaThread(`${this.id}:${String(value)}`, call);
  }

  /** A call that is about the client as a whole. */
  async call<T>(call: Arguments): Promise<T> {
    return (await this.#jvm.call<T>({ client: this.name, thread: "client", ...call })).value;
  }

  async close(): Promise<void> {
    await this.#jvm.call({ client: this.name, thread: "shutdown", op: "shutdown" });
  }
}

type Call = (call: Arguments) => Promise<Answer<unknown>>;

/** A thread that does one call after the other. */
export class JavaThread {
  /** As it stands in Redis. */
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

  /** Whether it waits for a message. Redisson's "wake all" is not heard by a thread that is about to. */
  async isAsleep(): Promise<boolean> {
    return (await this.#call({ op: "isAsleep" })).value === true;
  }

  /** Ends the wait that this thread is in, when it sleeps: an interrupt on the way to it makes Redisson fail otherwise. */
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

  /** With the time at which it ended there. */
  timed<T>(op: string, args: Arguments = {}): Promise<Answer<T>> {
    return this.#call({ ...this.#subject, op, ...args }) as Promise<Answer<T>>;
  }

  protected async perform<T>(op: string, args: Arguments = {}): Promise<T> {
    return (await this.timed<T>(op, args)).value;
  }
}

/** An RLock. Without a lease the watchdog renews. */
export class JavaLock extends JavaObject {
  /** Can be interrupted. */
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

  /** Of a fenced lock. */
  async lockAndGetToken(): Promise<bigint> {
    return BigInt(await this.perform<string>("lockAndGetToken"));
  }

  /** Of a fenced lock; null if it was not free. */
  async tryLockAndGetToken(wait?: number, lease?: number): Promise<bigint | null> {
    const token = await this.perform<string | null>("tryLockAndGetToken", { wait, lease });
    return token === null ? null : BigInt(token);
  }

  /** Of a fenced lock: the last one that anybody was given. */
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

  /** Resolves with the id; without a lease the permit never ends. */
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

  /** Without a wait it waits for ever. */
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
