/** Redisson's clients, threads and objects as the driver offers them. */
import { until, type Watched, watch } from "../support/index.js";
import {
  argumentsOf,
  type LatchCalls,
  type LockCalls,
  type LockKind,
  type PermitsCalls,
  type SemaphoreCalls,
  type Subject,
} from "./calls.js";
import type { Driver } from "./jvm.js";
import type { Party } from "./party.js";

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

/** An RLock. A token is text, because it may be large. */
export interface JavaLock extends LockCalls {
  isHeldByCurrentThread(): Promise<boolean>;
  /** Only for a fenced lock. */
  lockAndGetToken(): Promise<string>;
  /** Only for a fenced lock: the last token that was given out. */
  getToken(): Promise<string>;
}

export interface JavaLatch extends LatchCalls {
  delete(): Promise<boolean>;
}

type Arguments = Readonly<Record<string, unknown>>;
type Call = (call: Arguments) => Promise<unknown>;

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
    return new JavaClient(jvm, name, await jvm.call({ client: name, op: "connect", ...options }));
  }

  /** A thread of that name, made at its first use; to Redisson a thread is an owner. */
  async thread(name: string): Promise<JavaThread> {
    const call = (rest: Arguments) => this.#jvm.call({ client: this.name, thread: name, ...rest });
    return new JavaThread(`${this.id}:${String(await call({ op: "threadId" }))}`, call);
  }

  /** Makes a call about the client as a whole. */
  call<T>(call: Arguments): Promise<T> {
    return this.#jvm.call({ client: this.name, thread: "client", ...call });
  }

  async close(): Promise<void> {
    await this.#jvm.call({ client: this.name, thread: "shutdown", op: "shutdown" });
  }
}

/** A thread that makes one call after the other. */
export class JavaThread implements Party {
  readonly side = "Java";
  readonly owner: string;
  readonly #call: Call;

  constructor(owner: string, call: Call) {
    this.owner = owner;
    this.#call = call;
  }

  lock(kind: LockKind, name: string): JavaLock {
    return this.#calls("lock", { kind, name });
  }

  multiLock(...names: string[]): JavaLock {
    return this.#calls("lock", { kind: "multi", members: names.map((name) => ({ kind: "lock", name })) });
  }

  semaphore(name: string): SemaphoreCalls {
    return this.#calls("semaphore", { kind: "semaphore", name });
  }

  permits(name: string): PermitsCalls {
    return this.#calls("permits", { kind: "permits", name });
  }

  latch(name: string): JavaLatch {
    return this.#calls("latch", { kind: "latch", name });
  }

  /** Makes a call that the table does not have. */
  call<T>(call: Arguments): Promise<T> {
    return this.#call(call) as Promise<T>;
  }

  async parked<T>(call: () => Promise<T>): Promise<Watched<T>> {
    const watched = watch(call());
    await until("the thread sleeps", async () => watched.state !== "pending" || (await this.#isAsleep()));
    if (watched.state !== "pending") throw new Error("the call did not wait", { cause: watched.error });
    return watched;
  }

  /** Interrupts the thread's wait once it sleeps, because an earlier interrupt makes Redisson fail in another way. */
  async giveUp(): Promise<void> {
    await until("the thread sleeps", () => this.#isAsleep());
    await this.call({ op: "interrupt" });
  }

  /** Whether the thread waits for a message. A thread that is about to wait does not hear Redisson's "wake all". */
  #isAsleep(): Promise<boolean> {
    return this.call({ op: "isAsleep" });
  }

  #calls<T>(subject: Subject, of: Arguments): T {
    const calls = Object.entries(argumentsOf(subject)).map(([op, names]) => {
      const make = (...given: unknown[]) =>
        this.call({ ...of, op, ...Object.fromEntries(names.map((name, i) => [name, given[i]])) });
      return [op, make];
    });
    return Object.fromEntries(calls) as T;
  }
}
