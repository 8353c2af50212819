/**
 * Sends script calls to the server, each again and again until it is answered or its time is up.
 *
 * Owns the time-outs, the retries and the meaning of errors. Knows nothing of locks: every script may run twice without
 * harm, so a call is sent again whenever its outcome is unknown.
 */
import { type Clock, type Instant, instant } from "../base/clock.js";
import { ClientClosedError, RedisUnavailableError } from "../base/errors.js";
import { List } from "../base/list.js";
import { SharedTimeout } from "../base/shared-timeout.js";
import type { ScriptCall } from "../scripts/script.js";
import { Backlog } from "./backlog.js";
import { CleanUp } from "./cleanup.js";
import type { Command, PlainCommand } from "./command.js";
import { type Connection, isCluster, lookForMasters, masterAddress } from "./connection.js";
import { lacksCommand } from "./failures.js";
import type { KeepAlive } from "./keep-alive.js";
import { type CommandSpec, PromisedCommand } from "./promised-command.js";
import { Sender } from "./sender.js";
import { Servers } from "./servers.js";
import { Trouble } from "./trouble.js";

export interface CommandRunnerOptions {
  /** The client's own. */
  readonly connection: Connection;
  readonly alive: KeepAlive;
  readonly clock: Clock;
  readonly commandTimeout: number;
  readonly shardedPubSub: boolean | "auto";
  /** Test only: take the path for servers before Redis 7. */
  readonly legacyServer: boolean;
}

export class CommandRunner {
  readonly connection: Connection;
  /** Is told while commands have no answer. */
  readonly alive: KeepAlive;
  readonly clock: Clock;
  readonly commandTimeout: number;
  readonly isCluster: boolean;
  readonly sender: Sender;
  /** The health of each server that it talks to. */
  readonly servers: Servers;
  readonly cleanUp: CleanUp;
  readonly backlog: Backlog;
  /** One timer for all calls that have `commandTimeout`. */
  readonly limit: SharedTimeout<Command>;
  /** How often the connection was lost. */
  connectionEpoch = 0;
  /** The command by which scripts announce a release. */
  publishCommand: "PUBLISH" | "SPUBLISH" = "PUBLISH";
  /** {@link publishCommand} is known. */
  isPrepared: boolean;
  #preparing: Promise<void> | undefined;
  #closed = false;
  /** Calls with a time-out of their own. */
  readonly #timed = new List<Command>();
  readonly #trouble: Trouble;

  constructor(options: CommandRunnerOptions) {
    const { alive, connection, clock } = options;
    this.connection = connection;
    this.alive = alive;
    this.clock = clock;
    this.commandTimeout = options.commandTimeout;
    this.isCluster = isCluster(connection);
    this.limit = new SharedTimeout(clock, options.commandTimeout);
    this.servers = new Servers(connection, clock, options.commandTimeout);
    this.#trouble = new Trouble(connection, this.servers);
    this.sender = new Sender(connection, options.legacyServer);
    this.cleanUp = new CleanUp((key) => masterAddress(connection, key));
    this.backlog = new Backlog(this);
    this.isPrepared = !this.isCluster || options.shardedPubSub !== "auto";
    if (this.isCluster && options.shardedPubSub === true) this.publishCommand = "SPUBLISH";
    // A cluster stays connected when it loses a node, and tells of the node instead.
    for (const loss of ["close", "-node", "node error"]) connection.on(loss, () => this.lost());
  }

  /** Finds out, once, whether the cluster has sharded pub/sub, in the way Redisson does; the commands wait for that. */
  prepare(): Promise<void> {
    this.#preparing ??= this.connection
      .call("PUBSUB", "SHARDNUMSUB")
      .then(
        () => this.#prepared("SPUBLISH"),
        (error: unknown) => {
          // Any other error says nothing about the server: it is asked again.
          if (!lacksCommand(error)) throw error;
          this.#prepared("PUBLISH");
        },
      )
      .finally(() => {
        this.#preparing = undefined;
      });
    return this.#preparing;
  }

  /** The connection is lost: what is open may have run, and may be sent once more. */
  lost(): void {
    this.connectionEpoch++;
    for (const command of this.commands()) command.unsure();
  }

  #prepared(publishCommand: "PUBLISH" | "SPUBLISH"): void {
    this.publishCommand = publishCommand;
    this.isPrepared = true;
  }

  get connected(): boolean {
    return this.connection.status === "ready";
  }

  /**
   * Runs a script, or another command that may be repeated, and again while failures may pass. `make` is called for each
   * sending.
   * @throws UNAVAILABLE without a usable answer in time; UNSUPPORTED, WRONG_DATA as the server says
   */
  call<T>(lockName: string, make: () => ScriptCall | PlainCommand, read: (reply: unknown) => T): Promise<T> {
    return this.#run({ lockName, make, read, isVital: false });
  }

  /**
   * Runs a script until it is answered, however long that takes: for clean-up in the background. `giveUpAfter`: milliseconds after which the script is not sent any more.
   * @throws CLIENT_CLOSED when the runner is closed first; UNSUPPORTED, WRONG_DATA as {@link call}
   */
  callUntilAnswered<T>(
    lockName: string,
    make: () => ScriptCall,
    read: (reply: unknown) => T,
    giveUpAfter?: number,
  ): Promise<T> {
    return this.#run({ lockName, make, read, isVital: true }, giveUpAfter);
  }

  /** Runs a command, as {@link call} does with scripts. */
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
    if (ms === Number.POSITIVE_INFINITY) return work;
    return new Promise((resolve, reject) => {
      const cancel = this.clock.after(ms, () => reject(this.unavailable(lockName)));
      const settled =
        <V>(settle: (value: V) => void) =>
        (value: V) => {
          cancel();
          settle(value);
        };
      work.then(settled(resolve), settled(reject));
    });
  }

  /** The error of a call that got no usable answer. Its default cause is the trouble of the connection, or of the server. */
  unavailable(lockName: string, cause: Error = this.#trouble.cause): RedisUnavailableError {
    return new RedisUnavailableError(lockName, cause);
  }

  /** Ends all commands. */
  close(): void {
    this.#closed = true;
    this.cleanUp.close();
    for (const command of this.commands()) command.close();
    this.limit.close();
  }

  silent(): void {
    this.servers.resetSilent();
    lookForMasters(this.connection);
  }

  over(command: Command): void {
    if (!this.limit.running.remove(command)) this.#timed.remove(command);
    if (command.isLeftover) this.alive.done();
    else this.alive.release();
  }

  goOn(command: Command): void {
    if (!command.isLeftover) this.alive.leave();
    command.isLeftover = true;
    this.limit.start(command);
  }

  /**
   * Begins a command: it is sent until it is answered, fails for good, or `within` milliseconds are over. `giveUpAfter`:
   * milliseconds after which one that goes on is given up.
   */
  begin(
    command: Command,
    within: number = this.commandTimeout,
    now: Instant = instant(this.clock),
    giveUpAfter?: number,
  ): void {
    this.alive.need();
    command.open(now, giveUpAfter);
    if (within === this.limit.ms) this.limit.start(command, now.mono);
    else {
      this.#timed.add(command);
      command.cancel = this.clock.after(within, () => command.expire());
    }
    command.send();
    // What close() itself causes is sent once, and not waited for.
    if (this.#closed) command.close();
  }

  #run<T>(spec: CommandSpec<T>, giveUpAfter?: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const { lockName, isVital } = spec;
      const full = isVital ? undefined : this.backlog.refusal(lockName);
      if (full) return reject(full);
      // A clean-up that close() itself causes is sent once, and not waited for.
      if (this.#closed && !isVital) return reject(new ClientClosedError(lockName));
      this.begin(new PromisedCommand(this, spec, resolve, reject), undefined, undefined, giveUpAfter);
    });
  }

  /** All commands without an answer. */
  commands(): Command[] {
    return [...this.limit.running.all(), ...this.#timed.all()];
  }
}
