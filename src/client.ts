/** The client: hands out locks and synchronizers, and ends everything. */
import type { RedisOptions } from "ioredis";
import { checkInteger, checkOneOf, checkOptions, checkType, checkWait } from "./base/arguments.js";
import { tellCaller } from "./base/errors.js";
import type { LockEventName, LockListener } from "./base/events.js";
import { type LockClientStats, NOW, type Now } from "./base/figures.js";
import { clientId } from "./base/ids.js";
import { lockKey } from "./base/names.js";
import { noop } from "./base/work.js";
import { type CloseOptions, checkClientOptions, type LockClientOptions } from "./client-options.js";
import { checkServer } from "./client-ready.js";
import { nowOf, statsOf } from "./client-telling.js";
import { Env } from "./env.js";
import type { InspectOptions, ListOptions, NumberKind } from "./inspection/inspector.js";
import type { LockInfo } from "./inspection/lock-info.js";
import { Fair } from "./kinds/fair.js";
import { Fenced } from "./kinds/fenced.js";
import { Kind } from "./kinds/kind.js";
import { Read, Write } from "./kinds/read-write.js";
import { FairLock, FencedLock, Lock, ReadWriteLock, type ReadWriteLockOptions } from "./lock/lock.js";
import { Owner } from "./owner/owner.js";
import { connectionTo } from "./redis/connect.js";
import { checkConnection, type RedisConnection } from "./redis/connection.js";
import { scrubbed } from "./redis/failures.js";
import { CountDownLatch } from "./semaphores/count-down-latch.js";
import { SharedNumber } from "./semaphores/number.js";
import { PermitExpirableSemaphore } from "./semaphores/permit-expirable-semaphore.js";
import { Semaphore } from "./semaphores/semaphore.js";

/**
 * Locks on one Redis (or Valkey): standalone, Sentinel or Cluster.
 * @example
 * const client = LockClient.connect("redis://localhost:6379");
 * await client.getLock("stock:42").run((hold) => sell("42", hold.signal));
 * await client.close();
 */
export class LockClient {
  readonly #env: Env;
  #closing: Promise<void> | undefined;
  /** @internal */
  readonly [NOW]: () => Now = () => nowOf(this.#env);

  /**
   * `redis`: an ioredis `Redis` or `Cluster`, which stays yours. The client makes its own connections from it by
   * `duplicate()`, and does not use, change or close it.
   * @throws TypeError, RangeError for wrong arguments, and for a connection with ioredis' `keyPrefix`
   */
  constructor(redis: RedisConnection, options?: LockClientOptions) {
    const settings = checkClientOptions(options);
    this.#env = new Env(checkConnection(redis), settings);
    settings.onMade((reason) => this.#env.loseAll(reason));
  }

  /**
   * Makes a client of a URL or ioredis options; it connects at once.
   * @throws TypeError, RangeError for wrong arguments, and for `keyPrefix`; Error without the package ioredis
   */
  static connect(target: string | RedisOptions, options?: LockClientOptions): LockClient {
    const client = new LockClient(connectionTo(target), options);
    const { events, runner } = client.#env;
    runner.connection.on("error", (error: Error) => events.emit("error", { cause: scrubbed(error) }));
    runner.connection.connect().catch(noop); // the event tells why
    return client;
  }

  /** A reentrant lock, not fair. @throws TypeError, RangeError for a wrong name */
  getLock(name: string): Lock {
    return new Lock(new Kind(this.#env, name, this.#key(name)));
  }

  /** A reentrant lock that is granted first come first served over all processes. @throws as {@link getLock} */
  getFairLock(name: string): FairLock {
    return new FairLock(new Fair(this.#env, name, this.#key(name)));
  }

  /** A reentrant lock whose holds carry a fencing token. @throws as {@link getLock} */
  getFencedLock(name: string): FencedLock {
    return new FencedLock(new Fenced(this.#env, name, this.#key(name)));
  }

  /** Many readers or one writer. @throws as {@link getLock}, and TypeError for wrong options */
  getReadWriteLock(name: string, options?: ReadWriteLockOptions): ReadWriteLock {
    const { preferWriters = true } = checkOptions(options, ["preferWriters"], "getReadWriteLock");
    const isPreferred = checkOneOf(preferWriters, "preferWriters", true, false);
    const key = this.#key(name);
    return new ReadWriteLock(
      new Read(this.#env, name, key, isPreferred),
      new Write(this.#env, name, key, isPreferred),
    );
  }

  /** Permits without owner or lease: a process that dies keeps them. @throws as {@link getLock} */
  getSemaphore(name: string): Semaphore {
    return new Semaphore(this.#number("semaphore", name));
  }

  /** Permits with a lease each. @throws as {@link getLock} */
  getPermitExpirableSemaphore(name: string): PermitExpirableSemaphore {
    return new PermitExpirableSemaphore(this.#number("permits", name));
  }

  /** A gate that opens for all when it has been counted down to zero. @throws as {@link getLock} */
  getCountDownLatch(name: string): CountDownLatch {
    return new CountDownLatch(this.#number("latch", name));
  }

  /**
   * What Redis knows of a lock, of this library or Redisson's; null if it is free. A semaphore or a latch is null, too,
   * unless `kinds` is "all". Also who holds it and who waits for it, as far as their clients report it.
   * @throws WRONG_DATA for data that is neither this library's nor Redisson's; UNAVAILABLE, UNSUPPORTED, CLIENT_CLOSED
   */
  async inspect(name: string, options?: InspectOptions): Promise<LockInfo | null> {
    const { kinds = "locks" } = checkOptions(options, ["kinds"], "inspect");
    const key = this.#key(name);
    this.#env.assertOpen(name);
    return this.#env.inspector
      .inspect(name, key, checkOneOf(kinds, "kinds", "locks", "all"))
      .catch(tellCaller);
  }

  /**
   * All locks that are held, on every master, by SCAN, in no order. One that comes or goes meanwhile may be missing.
   * @throws UNAVAILABLE, UNSUPPORTED, CLIENT_CLOSED, while the list is read
   */
  async *list(options?: ListOptions): AsyncGenerator<LockInfo, void, void> {
    const given = checkOptions(options, ["match", "count", "kinds"], "list");
    const { match = "*", count = 1_000, kinds = "locks" } = given;
    const pattern = checkType(match, "match", "string");
    const step = checkInteger(count, "count", 1);
    yield* this.#env.inspector.list(pattern, step, checkOneOf(kinds, "kinds", "locks", "all"));
  }

  /** The first part of every `ownerId` of this client. */
  get id(): string {
    return this.#env.clientId;
  }

  /** The name of this process for people: the option `label`. */
  get label(): string {
    return this.#env.presence.client.label;
  }

  /** What this client has done since it was made, and what it has and waits for now. Sends nothing. */
  stats(): LockClientStats {
    return statsOf(this.#env);
  }

  /**
   * Runs fn, and all that it awaits, as one new owner, which fn gets; resolves with what fn returns. The owner belongs to
   * the async context: inside fn it counts for the locks of every client of the process.
   * @throws what fn throws; TypeError if it is no function; CLIENT_CLOSED
   */
  async scope<T>(fn: (owner: Owner) => T | Promise<T>): Promise<T> {
    return this.newOwner().scope(fn);
  }

  /** A new owner, to be named in `options.owner` or used by its `scope`. @throws CLIENT_CLOSED */
  newOwner(): Owner {
    this.#env.assertOpen("");
    return new Owner();
  }

  /** Calls `listener` at each event of this name. @throws TypeError for an unknown event, and for what is no function */
  on<E extends LockEventName>(event: E, listener: LockListener<E>): this {
    this.#env.events.listen("on", event, listener);
    return this;
  }

  /** As {@link on}, for the next event only. */
  once<E extends LockEventName>(event: E, listener: LockListener<E>): this {
    this.#env.events.listen("once", event, listener);
    return this;
  }

  /** Removes a listener that {@link on} or {@link once} has added. @throws as {@link on} */
  off<E extends LockEventName>(event: E, listener: LockListener<E>): this {
    this.#env.events.listen("off", event, listener);
    return this;
  }

  /**
   * Resolves when the server is reached, is new enough, and permits what this client's locks, semaphores and latches
   * send: commands, keys and channels behind `prefix`. Without a prefix it cannot see rights that are for some names.
   * @throws UNAVAILABLE, UNSUPPORTED, CLIENT_CLOSED
   */
  async ready(): Promise<void> {
    const env = this.#env;
    env.assertOpen("");
    const name = `holdfast-ready-${clientId()}`;
    await checkServer(env, new Kind(env, name, this.#key(name))).catch(tellCaller);
  }

  /**
   * Ends the client. It refuses new calls, rejects waiters with CLIENT_CLOSED, and gives live holds `timeout`
   * milliseconds to end by themselves. Then it ends the rest (LOCK_LOST, reason `closed`). A second call changes nothing.
   * @throws TypeError, RangeError for wrong options; nothing else
   */
  async close(options?: CloseOptions): Promise<void> {
    const { timeout } = checkOptions(options, ["timeout"], "close");
    const grace = checkWait(timeout, "timeout") ?? 5_000;
    this.#closing ??= this.#env.close(grace);
    return this.#closing;
  }

  /** As {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #number(kind: NumberKind, name: string): SharedNumber {
    const key = this.#key(name);
    this.#env.inspector.note(key, kind);
    return new SharedNumber(this.#env, kind, name, key);
  }

  #key(name: string): string {
    const { settings, runner } = this.#env;
    return lockKey(name, settings.prefix, runner.isCluster);
  }
}
