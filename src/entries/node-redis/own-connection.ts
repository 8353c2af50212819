/**
 * A connection that the library makes for itself, with the options of the user's client. node-redis keeps one client
 * over many sockets: it subscribes again by itself and tells nobody, keeps commands for the next socket, and up to
 * version 5 may give them the replies of others there. So each socket has a client of its own here, which ends with it;
 * the core is told of every loss, and subscribes and sends again.
 */
import { clearTimeout, setTimeout } from "../../base/platform.js";
import type { ConnectionOptions, Stream, SubscriberConnection } from "../../redis/connection.js";
import { Arrival } from "./arrival.js";
import { ChannelChanges } from "./channel-changes.js";
import {
  another,
  destroy,
  disconnected,
  ignore,
  inTime,
  isMoved,
  isRefusal,
  meet,
  named,
  PLAINLY,
  type PlainClient,
  type Template,
} from "./clients.js";
import { CommandList } from "./command-list.js";
import { Emitter } from "./emitter.js";

/** Milliseconds for an attempt to connect: twice what node-redis itself gives a socket unless it is told. */
const ATTEMPT_TIMEOUT = 10_000;
const LONGEST_PAUSE = 2_000;

export interface OwnOptions {
  /** Connects at the first command if true. Default true. */
  readonly lazyConnect?: boolean;
  /** Milliseconds before the n-th attempt. */
  readonly retryStrategy?: (times: number) => number;
}

export class OwnConnection extends Emitter implements SubscriberConnection {
  readonly options: ConnectionOptions = {};
  /** Says whether the connection keeps the process alive. */
  readonly stream: Stream;
  status = "wait";
  readonly #source: () => Promise<Template>;
  readonly #retryStrategy: (times: number) => number;
  #client: PlainClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #heard = (_: string, channel: string) => this.emit("message", channel);
  readonly #heardSharded = (_: string, channel: string) => this.emit("smessage", channel);
  readonly #changes = new ChannelChanges(() => this.ready());
  /** The present attempt: the results of earlier ones are not used. */
  #attempt: object | undefined;
  /** Attempts since the connection was ready last. */
  #attempts = 0;
  #keepsAlive = true;
  #pending = 0;
  /** For calls that wait until the connection is ready. */
  #arrival: Arrival | undefined;
  /** The server did not let the user in. */
  #refusal: Error | undefined;

  /** `source` gives the options that are copied; it is called at each attempt. */
  constructor(source: () => Promise<Template>, options: OwnOptions = {}) {
    super();
    this.#source = source;
    this.#retryStrategy = options.retryStrategy ?? ((times) => Math.min(50 * times, LONGEST_PAUSE));
    this.stream = {
      ref: () => this.#keepAlive(true),
      unref: () => this.#keepAlive(false),
      destroy: () => this.disconnect(true),
      cork: ignore,
      uncork: ignore,
      on: ignore,
    };
    if (options.lazyConnect === false) this.#start();
  }

  /** Commands that have no answer yet. */
  get pending(): number {
    return this.#pending;
  }

  /**
   * Resolves when connected, however many attempts that takes; rejects if the server does not let the user in. Connects
   * anew what has ended; nothing else does.
   */
  async connect(): Promise<void> {
    if (this.status === "end") this.status = "wait";
    await this.ready();
  }

  /** The client that is connected; waits and rejects as {@link connect}, and rejects if the connection has ended. */
  ready(): Promise<PlainClient> {
    if (this.#client && this.status === "ready") return Promise.resolve(this.#client);
    if (this.#refusal || this.status === "end") return Promise.reject(this.#refusal ?? disconnected());
    this.#arrival ??= new Arrival();
    const { promise } = this.#arrival;
    if (this.status === "wait") this.#start();
    return promise;
  }

  /** Sends a command as soon as the connection is ready. */
  send(args: readonly string[]): Promise<unknown> {
    const client = this.status === "ready" ? this.#client : undefined;
    const sent = client
      ? client.sendCommand(args, PLAINLY)
      : this.ready().then((arrived) => arrived.sendCommand(args, PLAINLY));
    this.#pending++;
    return sent.then(
      (reply) => {
        this.#pending--;
        return reply;
      },
      (error: unknown) => {
        this.#pending--;
        throw named(error);
      },
    );
  }

  /** Ends the connection; with `reconnect` it is made anew. */
  disconnect(reconnect = false): void {
    if (this.status === "wait" || this.status === "end") {
      this.status = "end";
      return;
    }
    this.#lose(disconnected(), reconnect);
  }

  duplicate(options?: OwnOptions): OwnConnection {
    return new OwnConnection(this.#source, options);
  }

  evalsha(sha1: string, keys: number, ...rest: string[]): Promise<unknown> {
    return this.send(["EVALSHA", sha1, String(keys), ...rest]);
  }

  eval(text: string, keys: number, ...rest: string[]): Promise<unknown> {
    return this.send(["EVAL", text, String(keys), ...rest]);
  }

  call(...args: string[]): Promise<unknown> {
    return this.send(args);
  }

  ping(): Promise<unknown> {
    return this.call("PING");
  }

  pipeline(): CommandList {
    return new CommandList(() => this.ready());
  }

  subscribe(channel: string): Promise<unknown> {
    return this.#changes.change(channel, (to) => to.subscribe(channel, this.#heard));
  }

  unsubscribe(channel: string): Promise<unknown> {
    return this.#changes.change(channel, (to) => to.unsubscribe(channel, this.#heard));
  }

  ssubscribe(channel: string): Promise<unknown> {
    const change = this.#changes.change(channel, (to) => to.sSubscribe(channel, this.#heardSharded));
    return change.catch((error: unknown) => {
      if (isMoved(error)) this.emit("misdirected");
      throw error;
    });
  }

  sunsubscribe(channel: string): Promise<unknown> {
    return this.#changes.change(channel, (to) => to.sUnsubscribe(channel, this.#heardSharded));
  }

  #start(): void {
    const attempt = {};
    this.#attempt = attempt;
    this.status = this.#attempts === 0 ? "connecting" : "reconnecting";
    this.#attempts++;
    const isPresent = () => this.#attempt === attempt;
    const failed = (error: unknown) => {
      if (isPresent()) this.#lose(named(error), true);
    };
    inTime(ATTEMPT_TIMEOUT, async () => {
      const source = await this.#source();
      if (!isPresent()) return;
      const client = another(source);
      this.#client = client;
      // Also of a client that is still connected: it could not read a reply, so those behind it may not be its answers.
      client.on("error", failed);
      client.on("end", () => failed(disconnected()));
      client.on("sharded-channel-moved", () => this.emit("moved"));
      if (!this.#keepsAlive) client.unref();
      await meet(client);
    }).then(() => {
      if (isPresent()) this.#connected();
    }, failed);
  }

  #connected(): void {
    this.#attempts = 0;
    this.#refusal = undefined;
    this.status = "ready";
    this.#arrive((arrival) => arrival.resolve(this.#client as PlainClient));
    this.emit("connect");
    this.emit("ready");
  }

  #lose(error: Error, reconnect: boolean): void {
    const client = this.#client;
    this.#client = undefined;
    this.#attempt = undefined;
    this.#refusal = isRefusal(error) ? error : undefined;
    clearTimeout(this.#timer);
    this.status = reconnect ? "reconnecting" : "end";
    if (client) destroy(client);
    if (this.#refusal || !reconnect) this.#arrive((arrival) => arrival.reject(error));
    if (reconnect) {
      if (this.listenerCount("error") > 0) this.emit("error", error);
      this.#timer = setTimeout(() => this.#start(), this.#retryStrategy(Math.max(1, this.#attempts)));
      if (!this.#keepsAlive) this.#timer.unref();
    }
    this.emit("close");
    if (!reconnect) this.emit("end");
  }

  #arrive(settle: (arrival: Arrival) => void): void {
    const arrival = this.#arrival;
    this.#arrival = undefined;
    if (arrival) settle(arrival);
  }

  #keepAlive(keepsAlive: boolean): void {
    this.#keepsAlive = keepsAlive;
    if (keepsAlive) {
      this.#client?.ref();
      this.#timer?.ref();
    } else {
      this.#client?.unref();
      this.#timer?.unref();
    }
  }
}
