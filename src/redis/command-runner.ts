/**
 * What the commands of a client share, and those commands whose outcome is a promise.
 *
 * Knows nothing of locks: every script may run twice without harm, so a call is sent again whenever its outcome is unknown.
 */
import { type Clock, elapsed, type Instant, instant } from "../base/clock.js";
import { ClientClosedError, RedisUnavailableError } from "../base/errors.js";
import { setImmediate } from "../base/platform.js";
import { TimerHeap } from "../base/timer-heap.js";
import { noop } from "../base/work.js";
import type { ScriptCall } from "../scripts/script.js";
import { CleanUp } from "./cleanup.js";
import { Command, type PlainCommand } from "./command.js";
import { type Connection, isCluster } from "./connection.js";
import { lacksCommand } from "./failures.js";
import { KeepAlive } from "./keep-alive.js";
import { ownConnection } from "./own-connection.js";
import { Sender } from "./sender.js";
import { Servers } from "./servers.js";

export interface CommandRunnerOptions {
  readonly clock: Clock;
  readonly commandTimeout: number;
  readonly shardedPubSub: boolean | "auto";
}

export class CommandRunner {
  readonly connection: Connection;
  /** Is told while commands have no answer. */
  readonly alive: KeepAlive = new KeepAlive(() => this.open.first !== undefined);
  readonly clock: Clock;
  readonly commandTimeout: number;
  readonly isCluster: boolean;
  readonly sender: Sender;
  /** Those that it talks to. */
  readonly servers: Servers;
  readonly cleanUp: CleanUp;
  /** Commands without an answer, by when their time is up. */
  readonly open: TimerHeap<Command>;
  /** How often the connection was lost. */
  connectionEpoch = 0;
  /** The command by which scripts announce a release. Scripts wait until that is known. */
  publishCommand: "PUBLISH" | "SPUBLISH" = "PUBLISH";
  /** {@link publishCommand} is known. */
  prepared: boolean;
  isClosed = false;
  /** How many scripts were sent. */
  sent = 0;
  /** Called when no command is open any more. */
  readonly onIdle: (() => void)[] = [];
  #preparing: Promise<void> | undefined;
  #arrival: Promise<void> | undefined;

  /** `given`: the connection of the user, from which it makes its own. */
  constructor(given: Connection, options: CommandRunnerOptions) {
    const { clock, commandTimeout } = options;
    const connection = ownConnection(given, this.alive);
    this.connection = connection;
    this.clock = clock;
    this.commandTimeout = commandTimeout;
    this.isCluster = isCluster(connection);
    this.open = new TimerHeap(clock, (command) => command.expire());
    this.servers = new Servers(connection, clock, commandTimeout, this.open);
    this.sender = new Sender(connection);
    this.cleanUp = new CleanUp(this.servers);
    const sharded = this.isCluster && options.shardedPubSub;
    this.prepared = sharded !== "auto";
    if (sharded === true) this.publishCommand = "SPUBLISH";
    this.watch(connection);
  }

  /** Learns of each loss of this connection: what is open may have run, and may be sent once more. */
  watch(connection: Connection): void {
    const lost = () => {
      this.connectionEpoch++;
      for (const command of this.open.all()) command.unsure();
    };
    // A cluster stays connected when it loses a node, and tells of the node instead.
    for (const loss of ["close", "-node", "node error"]) connection.on(loss, lost);
  }

  /** Finds out, once, whether the cluster has sharded pub/sub, in the way Redisson does. Rejects with what says nothing. */
  prepare(): Promise<void> {
    this.#preparing ??= this.#askForSharded().finally(() => {
      this.#preparing = undefined;
    });
    return this.#preparing;
  }

  /** True until the first attempt to connect has ended. */
  get isFresh(): boolean {
    return this.connectionEpoch === 0 && !this.servers.connected;
  }

  /** Resolves when the first attempt to connect succeeds; rejects if it fails, or takes longer than a command may. */
  arrival(): Promise<void> {
    const { connection } = this;
    this.#arrival ??= new Promise((resolve, reject) => {
      connection.once("ready", resolve);
      connection.once("close", () => reject(this.unavailable("")));
      // It connects only when it is told to; its events report how that ends.
      if (connection.status === "wait") connection.connect().catch(noop);
    });
    return this.withTimeout("", this.#arrival);
  }

  /**
   * Runs a script or a command that may be repeated, and again while failures may pass.
   * @throws UNAVAILABLE without a usable answer in time; UNSUPPORTED, WRONG_DATA as the server says
   */
  async call<T>(lockName: string, request: Request, read: (reply: unknown) => T): Promise<T> {
    const full = this.cleanUp.refusal(lockName);
    if (full) throw full;
    if (this.isClosed) throw new ClientClosedError(lockName);
    return this.callUntilAnswered(lockName, request, read, 0);
  }

  /**
   * Runs a script until it is answered, however long that takes: for clean-up in the background. `longest`: milliseconds
   * after which it is given up.
   * @throws CLIENT_CLOSED when the runner is closed first; UNSUPPORTED, WRONG_DATA as {@link call}
   */
  callUntilAnswered<T>(
    lockName: string,
    request: Request,
    read: Read<T>,
    longest: number = Number.POSITIVE_INFINITY,
    sent?: Instant,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const work = { request, read, longest, resolve, reject };
      new PromisedCommand(this, lockName, work).begin(undefined, sent);
    });
  }

  /** Runs a command that may be repeated, as {@link call} does with scripts. */
  command(name: string, ...args: string[]): Promise<unknown> {
    const send = () => this.connection.call(name, ...args);
    return this.call(
      "",
      () => ({ send }),
      (reply) => reply,
    );
  }

  /** The outcome of `work`, or UNAVAILABLE after `ms` milliseconds (default `commandTimeout`), while the work goes on. */
  withTimeout<T>(lockName: string, work: Promise<T>, ms: number = this.commandTimeout): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.clock.after(ms, () => reject(this.unavailable(lockName)));
      work.finally(cancel).then(resolve, reject);
    });
  }

  /** The error of a call that got no usable answer. Its default cause is the trouble of the connection, or of the server. */
  unavailable(lockName: string, cause: Error = this.servers.cause): RedisUnavailableError {
    return new RedisUnavailableError(lockName, cause);
  }

  /** Resolves when all commands have been answered, and those that follow from their answers. */
  async idle(): Promise<void> {
    do {
      if (this.open.first) await new Promise<void>((resolve) => this.onIdle.push(resolve));
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.open.first);
  }

  /** Ends all commands. */
  close(): void {
    this.isClosed = true;
    this.cleanUp.close();
    for (const command of this.open.all()) command.close();
    this.open.close();
  }

  async #askForSharded(): Promise<void> {
    try {
      await this.command("PUBSUB", "SHARDNUMSUB");
      this.publishCommand = "SPUBLISH";
    } catch (error) {
      const { cause } = error as Error;
      // Any other error says nothing about the server.
      if (!lacksCommand(cause)) throw cause;
    }
    this.prepared = true;
  }
}

/** Makes what is sent, anew for each sending. */
type Request = () => ScriptCall | PlainCommand;

/** What an answer that has just come, `now`, means. */
type Read<T> = (reply: unknown, now: Instant) => T | PromiseLike<T>;

/** What a command with a promise needs until it ends. */
interface Work<T> {
  readonly request: Request;
  readonly read: Read<T>;
  /** Milliseconds for which it goes on after its time is up, since it must be done in the end. */
  readonly longest: number;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (error: unknown) => void;
}

class PromisedCommand<T> extends Command {
  /** Undefined once the command has ended, since ioredis may keep this object for long after that. */
  #work: Work<T> | undefined;

  constructor(runner: CommandRunner, lockName: string, work: Work<T>) {
    super(runner, lockName);
    this.#work = work;
  }

  protected override request(): ScriptCall | PlainCommand {
    return this.#given.request();
  }

  protected override goesOn(): boolean {
    return elapsed(this.sentAt, instant(this.runner.clock)) < this.#given.longest;
  }

  protected override answered(reply: unknown, now: Instant): void {
    const { read, resolve } = this.#given;
    resolve(read(reply, now));
    this.#work = undefined;
  }

  protected override failed(error: unknown): void {
    this.#given.reject(error);
    this.#work = undefined;
  }

  get #given(): Work<T> {
    return this.#work as Work<T>;
  }
}
