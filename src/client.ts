/** The client: makes the parts, hands out locks, and ends everything. */
import { checkName, checkOptions, checkWait } from "./base/arguments.js";
import { Events, type LockEventName, type LockListener } from "./base/events.js";
import { clientId } from "./base/ids.js";
import { lockChannel, sharesOneSlot } from "./base/names.js";
import { type CheckedOptions, checkClientOptions, type LockClientOptions } from "./client-options.js";
import { Engine } from "./engine/engine.js";
import { FairLock, FairPrimitive } from "./kinds/fair.js";
import { FencedLock, FencedPrimitive } from "./kinds/fenced.js";
import { HashPrimitive, type PrimitiveParts } from "./kinds/hash.js";
import { ReadWriteLock, type ReadWriteLockOptions } from "./kinds/read-write-lock.js";
import { makeRenewers, type Renewers } from "./kinds/renewers.js";
import { Env } from "./locks/env.js";
import { onForce } from "./locks/force.js";
import { Lock } from "./locks/lock.js";
import { checkServer } from "./locks/ready-check.js";
import { Replicas } from "./locks/replicas.js";
import { outside } from "./owners/context.js";
import { Owner } from "./owners/owner.js";
import { Router } from "./pubsub/router.js";
import { connect } from "./redis/connect.js";
import { type Connection, checkConnection, isCluster, type RedisConnection } from "./redis/connection.js";
import { scrubbed } from "./redis/failures.js";
import { Link } from "./redis/link.js";
import { slotOf } from "./redis/slots.js";
import { Watchdog } from "./watchdog/watchdog.js";

export interface CloseOptions {
  /** Milliseconds that live holds get to end by themselves. Default 5 000; 0 ends them at once. */
  timeout?: number | undefined;
}

/** Locks on one Redis (or Valkey): standalone, Sentinel or Cluster. */
export class LockClient {
  readonly #connection: Connection;
  readonly #options: CheckedOptions;
  readonly #owned: boolean;
  readonly #events: Events;
  readonly #link: Link;
  readonly #router: Router;
  readonly #engine: Engine;
  readonly #watchdog: Watchdog;
  readonly #env: Env;
  readonly #renewers: Renewers;
  readonly #stopListening: () => void;
  #closing: Promise<void> | undefined;

  /**
   * `redis`: an ioredis `Redis` or `Cluster`, which stays yours: it is neither changed nor closed. The client opens a
   * connection of its own to be woken by.
   * @throws TypeError, RangeError for wrong arguments, and for a connection with ioredis' `keyPrefix`
   */
  constructor(redis: RedisConnection, options?: LockClientOptions) {
    const checked = checkClientOptions(options);
    const connection = checkConnection(redis);
    const { clock, commandTimeout, legacyServer, pollCap, random, watchdogTimeout } = checked;
    const shardedPubSub = legacyServer ? false : checked.shardedPubSub;
    this.#connection = connection;
    this.#options = checked;
    this.#owned = OWNED.has(redis);
    this.#events = new Events(outside);
    this.#link = new Link({ connection, clock, commandTimeout, shardedPubSub, legacyServer, outside });
    const link = this.#link;
    this.#router = new Router({
      connection,
      clock,
      sharded: () => link.publishCommand === "SPUBLISH",
      outside,
    });
    this.#engine = new Engine({ link, clock, pollCap, random });
    const groupOf = isCluster(connection) ? slotOf : () => 0;
    // Holds that were taken one after the other soon share their renewals.
    this.#watchdog = new Watchdog({ clock, slack: watchdogTimeout / 12, groupOf, outside });
    this.#renewers = makeRenewers(link, watchdogTimeout);
    this.#env = new Env({
      clientId: clientId(),
      settings: checked,
      clock,
      link,
      router: this.#router,
      engine: this.#engine,
      watchdog: this.#watchdog,
      events: this.#events,
      replicas: this.#makeReplicas(),
    });
    this.#stopListening = onForce((primitive, by) => {
      if (by !== this.#env) for (const holdings of this.#env.live.all()) holdings.hearOfForce(primitive);
    });
  }

  /** A client with a connection of its own, to a URL or by ioredis options, which `close()` ends. */
  static connect(target: string | object, options?: LockClientOptions): LockClient {
    checkClientOptions(options);
    const redis = connect(target);
    OWNED.add(redis);
    const client = new LockClient(redis, options);
    redis.on("error", (error: Error) => client.#events.emit("error", { cause: scrubbed(error) }));
    return client;
  }

  /** A reentrant lock, not fair. */
  getLock(name: string): Lock {
    return new Lock(this.#env, new HashPrimitive(this.#parts(name)));
  }

  /** A reentrant lock that is granted first come first served over all processes. */
  getFairLock(name: string): FairLock {
    return new FairLock(this.#env, new FairPrimitive(this.#parts(name)));
  }

  /** A reentrant lock whose holds carry a fencing token. */
  getFencedLock(name: string): FencedLock {
    return new FencedLock(this.#env, new FencedPrimitive(this.#parts(name)));
  }

  /** Many readers or one writer. */
  getReadWriteLock(name: string, options?: ReadWriteLockOptions): ReadWriteLock {
    const { preferWriters = true } = checkOptions(options, ["preferWriters"], "getReadWriteLock");
    if (typeof preferWriters !== "boolean") throw new TypeError("preferWriters must be true or false");
    const key = this.#key(name);
    return new ReadWriteLock({
      env: this.#env,
      lockName: name,
      key,
      renewers: this.#renewers,
      preferWriters,
    });
  }

  /** Runs fn, and all that it awaits, as one new owner; resolves with what fn returns. */
  async scope<T>(fn: () => T | Promise<T>): Promise<T> {
    return this.newOwner().scope(fn);
  }

  /** A new owner, to be named in `options.owner` or used by its `scope`. */
  newOwner(): Owner {
    this.#env.assertOpen("");
    return new Owner();
  }

  on<E extends LockEventName>(event: E, listener: LockListener<E>): this {
    this.#events.on(event, listener);
    return this;
  }

  once<E extends LockEventName>(event: E, listener: LockListener<E>): this {
    this.#events.once(event, listener);
    return this;
  }

  off<E extends LockEventName>(event: E, listener: LockListener<E>): this {
    this.#events.off(event, listener);
    return this;
  }

  /**
   * Resolves when the server is reached, new enough, and permits the commands.
   * @throws UNAVAILABLE, UNSUPPORTED, CLIENT_CLOSED
   */
  async ready(): Promise<void> {
    this.#env.assertOpen("");
    await this.#link.prepare("", this.#options.commandTimeout);
    const name = `holdfast-ready-${clientId()}`;
    await checkServer(this.#env, this.#router, new HashPrimitive(this.#parts(name)));
  }

  /**
   * Ends the client: refuses new calls, rejects waiters with CLIENT_CLOSED, gives live holds `timeout` milliseconds to
   * end by themselves, and then ends the rest (LOCK_LOST, reason `closed`). Calling it again changes nothing.
   */
  async close(options?: CloseOptions): Promise<void> {
    const { timeout } = checkOptions(options, ["timeout"], "close");
    const grace = checkWait(timeout, "timeout") ?? 5_000;
    this.#closing ??= this.#close(grace);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(grace: number): Promise<void> {
    const env = this.#env;
    env.closed = true;
    await this.#engine.close();
    if (grace > 0) await this.#atMost(env.idle(), grace);
    for (const holdings of env.live.all()) holdings.loseByClose();
    await this.#atMost(env.settled(), this.#options.commandTimeout);
    this.#stopListening();
    this.#watchdog.close();
    this.#router.close();
    this.#link.close();
    env.replicas?.close();
    // Once what the close itself caused has been sent.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#owned) this.#connection.disconnect();
  }

  /** Resolves with the work, or after `ms`. */
  #atMost(work: Promise<unknown>, ms: number): Promise<void> {
    return new Promise((resolve) => {
      // This timer has to fire even when nothing else keeps the process alive.
      const timer =
        ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(resolve, Math.min(ms, 2 ** 31 - 1));
      void work.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** What the locks of one key are made of. */
  #parts(name: string): PrimitiveParts {
    const key = this.#key(name);
    return { env: this.#env, lockName: name, key, channel: lockChannel(key), renewer: this.#renewers.lock };
  }

  #key(name: string): string {
    checkName(name);
    const { prefix } = this.#options;
    const key = prefix ? `${prefix}:${name}` : name;
    if (this.#link.isCluster && !sharesOneSlot(key)) {
      throw new RangeError(
        `on a cluster the braces of "${key}" would put the keys of this lock in different slots`,
      );
    }
    return key;
  }

  #makeReplicas(): Replicas | undefined {
    const { replicas: required, replicasTimeout: timeout, legacyServer } = this.#options;
    if (required === 0) return undefined;
    const connection = this.#connection.duplicate();
    connection.on("error", () => {
      // The calls on it report what is wrong.
    });
    return new Replicas({ link: this.#link, connection, required, timeout, legacyServer });
  }
}

/** Connections that a client made for itself. */
const OWNED = new WeakSet<object>();
