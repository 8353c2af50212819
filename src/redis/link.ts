/**
 * The way to the server: one script call, tried again until it is answered or its time is up.
 *
 * Owns the time-outs, the retries and the meaning of errors. Knows nothing of locks: every script is made so that
 * running it twice is as good as once, so a call may be sent again whenever its outcome is unknown.
 */
import type { Clock } from "../base/clock.js";
import { isLockError, RedisUnavailableError } from "../base/errors.js";
import { TimeLimit } from "../base/time-limit.js";
import type { ArgumentValues, KeyValues, Script } from "../scripts/script.js";
import { type Connection, isCluster } from "./connection.js";
import { Pursuit } from "./pursuit.js";
import { Sender } from "./sender.js";

/** Milliseconds before clean-up is tried again, the first time; doubled up to `commandTimeout`. */
const FIRST_PAUSE = 10;

export interface LinkOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly commandTimeout: number;
  readonly shardedPubSub: boolean | "auto";
  /** Test only: take the path for servers before Redis 7. */
  readonly legacyServer: boolean;
  /** Runs a function outside every scope. */
  readonly outside: (fn: () => void) => void;
}

/** One script call. `within`: milliseconds until it is given up, with its outcome unknown. */
export interface Call<K extends KeyValues, A extends ArgumentValues> {
  readonly lockName: string;
  readonly script: Script<K, A>;
  readonly keys: K;
  readonly args: A;
  readonly within?: number;
}

export class Link {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly commandTimeout: number;
  readonly isCluster: boolean;
  readonly sender: Sender;
  /** `commandTimeout`, for all that runs under it. */
  readonly limit: TimeLimit;
  /** How often the connection was lost: a command that lived through a loss may have been sent twice. */
  losses = 0;
  #publish: "PUBLISH" | "SPUBLISH" | undefined;
  #closed = false;
  /** Calls without an answer yet. */
  readonly #pursuits = new Set<{ send(): void; close(): void }>();
  #silentSince = 0;
  /** What to do when the connection is there again. */
  readonly #onReady = new Set<() => void>();
  readonly #resendsItself: boolean;
  readonly #listeners: [event: string, listener: () => void][];

  constructor(options: LinkOptions) {
    const { connection, clock } = options;
    this.connection = connection;
    this.clock = clock;
    this.commandTimeout = options.commandTimeout;
    this.isCluster = isCluster(connection);
    this.limit = new TimeLimit(clock, options.commandTimeout, options.outside);
    this.sender = new Sender(connection, options.legacyServer);
    const { autoResendUnfulfilledCommands: standalone, redisOptions } = connection.options;
    this.#resendsItself = (standalone ?? redisOptions?.autoResendUnfulfilledCommands) !== false;
    if (!this.isCluster || options.shardedPubSub === false) this.#publish = "PUBLISH";
    else if (options.shardedPubSub === true) this.#publish = "SPUBLISH";
    const lost = () => {
      this.losses++;
    };
    const ready = () => {
      // Where ioredis is told not to send unanswered commands again, their promises may never settle.
      if (!this.#resendsItself) for (const pursuit of [...this.#pursuits]) pursuit.send();
      for (const callback of [...this.#onReady]) callback();
    };
    this.#listeners = [
      ["close", lost],
      // A cluster stays up when one of its nodes goes.
      ["node error", lost],
      ["-node", lost],
      ["ready", ready],
    ];
    for (const [event, listener] of this.#listeners) connection.on(event, listener);
  }

  /** The command that scripts announce a release by. Known once {@link prepare} has resolved. */
  get publishCommand(): "PUBLISH" | "SPUBLISH" {
    return this.#publish ?? "PUBLISH";
  }

  get prepared(): boolean {
    return this.#publish !== undefined;
  }

  /** Finds out, once, whether the cluster has sharded pub/sub, in the way Redisson does. */
  async prepare(lockName: string, within: number): Promise<void> {
    if (this.#publish) return;
    this.#publish = await this.retried(lockName, within, async () => {
      try {
        await this.connection.call("PUBSUB", "SHARDNUMSUB");
        return "SPUBLISH";
      } catch (error) {
        if (error instanceof Error && error.name === "ReplyError") return "PUBLISH";
        throw error;
      }
    });
  }

  /** True while Redis does not answer: not connected, or silent for a tenth of `commandTimeout`. */
  get away(): boolean {
    if (this.connection.status !== "ready") return true;
    return this.#pursuits.size > 0 && this.clock.mono() - this.#silentSince > this.commandTimeout / 10;
  }

  /** Calls back whenever the connection is ready again. Returns the way to stop that. */
  onReady(callback: () => void): () => void {
    this.#onReady.add(callback);
    return () => this.#onReady.delete(callback);
  }

  /**
   * Runs a script, and again while failures may pass.
   * @throws UNAVAILABLE without a usable answer in time; UNSUPPORTED, WRONG_DATA as the server says
   */
  call<K extends KeyValues, A extends ArgumentValues>(call: Call<K, A>): Promise<unknown> {
    const { script, keys, args, lockName } = call;
    return this.retried(lockName, call.within ?? this.commandTimeout, () =>
      this.sender.send(script, keys, args),
    );
  }

  /** Runs a command that may be repeated, as {@link call} does with scripts. */
  command(name: string, ...args: string[]): Promise<unknown> {
    return this.retried("", this.commandTimeout, () => this.connection.call(name, ...args));
  }

  /** The outcome of work that goes on in any case, or UNAVAILABLE when it takes longer than `commandTimeout`. */
  limited<T>(lockName: string, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.limit.start(() => reject(new RedisUnavailableError(lockName)));
      work.then(
        (value) => {
          cancel();
          resolve(value);
        },
        (error: unknown) => {
          cancel();
          reject(error);
        },
      );
    });
  }

  /**
   * Runs a script until it is answered, however long that takes: for clean-up in the background. `call` is made anew
   * for each try. Resolves with undefined when the link is closed first.
   * @throws UNSUPPORTED, WRONG_DATA as the server says
   */
  async insist<K extends KeyValues, A extends ArgumentValues>(call: () => Call<K, A>): Promise<unknown> {
    for (let pause = FIRST_PAUSE; !this.#closed; pause = Math.min(2 * pause, this.commandTimeout)) {
      try {
        return await this.call(call());
      } catch (error) {
        if (isLockError(error, "CLIENT_CLOSED")) return undefined;
        if (!isLockError(error, "UNAVAILABLE")) throw error;
        await this.#pauseUntilReady(pause);
      }
    }
    return undefined;
  }

  /** Ends the retries and takes the listeners off the user's connection. */
  close(): void {
    this.#closed = true;
    for (const [event, listener] of this.#listeners) this.connection.off(event, listener);
    for (const pursuit of [...this.#pursuits]) pursuit.close();
    for (const callback of [...this.#onReady]) callback();
    this.#onReady.clear();
  }

  #pauseUntilReady(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        stop();
        resolve();
      };
      const cancel = this.clock.after(ms, done);
      const stop = this.onReady(done);
    });
  }

  /** Tries `send` until it succeeds, fails for good, or `within` milliseconds are over. */
  retried<T>(lockName: string, within: number, send: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const { clock } = this;
      const over = () => {
        this.#pursuits.delete(pursuit);
        cancel();
      };
      const answered = () => {
        this.#silentSince = clock.mono();
      };
      const pursuit = new Pursuit({ clock, lockName, send, resolve, reject, over, answered });
      const giveUp = () => pursuit.giveUp();
      const cancel = within === this.limit.ms ? this.limit.start(giveUp) : clock.after(within, giveUp);
      if (this.#pursuits.size === 0) this.#silentSince = clock.mono();
      this.#pursuits.add(pursuit);
      if (this.#closed) pursuit.close();
      else pursuit.send();
    });
  }
}
