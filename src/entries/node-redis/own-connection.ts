/**
 * A connection that the library makes for itself, with the options of the user's client. node-redis keeps one client
 * over many sockets. It subscribes again by itself and tells nobody, and keeps commands for the next socket. Up to
 * version 5 it may give them the replies of others there. So each socket has a client of its own here, which ends with
 * it. The core learns of every loss, and subscribes and sends again.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { clearTimeout, setTimeout } from "../../base/platform.js";
import type {
  ConnectionOptions,
  EvalArguments,
  Stream,
  SubscriberConnection,
} from "../../redis/connection.js";
import { ChannelChanges } from "./channel-changes.js";
import {
  another,
  close,
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
  type Source,
} from "./clients.js";
import { CommandList } from "./command-list.js";
import { Emitter } from "./emitter.js";

/** Milliseconds for an attempt to connect: twice what node-redis itself gives a socket unless it is told. */
const ATTEMPT_TIMEOUT = 10_000;
const PAUSE = 50;

/**
 * Runs a function outside every scope and request. A socket must keep neither that of the call that makes it, nor that
 * in which the client was given. This file is loaded in neither, as a rule.
 */
const outside = AsyncLocalStorage.snapshot();

/** Options with the names that ioredis gives them. */
export interface OwnOptions {
  /** Connects at the first command if true. Default true. */
  readonly lazyConnect?: boolean;
  /** Milliseconds before the n-th attempt; null ends the connection. */
  readonly retryStrategy?: (times: number) => number | null;
  /** Whether the server that answers with this error is to be left. */
  readonly reconnectOnError?: (error: Error) => boolean;
}

/** One promise for all calls that wait until a connection is there. */
class Arrival {
  resolve: (client: PlainClient) => void = ignore;
  reject: (error: Error) => void = ignore;
  readonly promise: Promise<PlainClient> = new Promise((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

export class OwnConnection extends Emitter implements SubscriberConnection {
  readonly options: ConnectionOptions = {};
  /** It never keeps the process alive. */
  readonly stream: Stream;
  status = "wait";
  readonly #source: Source;
  readonly #how: OwnOptions;
  #client: PlainClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #heard = (_: string, channel: string) => this.emit("message", channel);
  readonly #heardSharded = (_: string, channel: string) => this.emit("smessage", channel);
  readonly #changes = new ChannelChanges(() => this.ready());
  /** The present attempt: the results of earlier ones are not used. */
  #attempt: object | undefined;
  /** Attempts since the connection was ready last. */
  #attempts = 0;
  /** Commands that have no answer yet. */
  #pending = 0;
  readonly #moved = () => this.disconnect(true);
  /** For calls that wait until the connection is ready. */
  #arrival: Arrival | undefined;
  /** The server did not let the user in. */
  #refusal: Error | undefined;

  constructor(source: Source, options: OwnOptions = {}) {
    super();
    this.#source = source;
    this.#how = options;
    this.options = { ...source.options };
    this.stream = {
      unref: ignore,
      destroy: () => this.disconnect(true),
      cork: ignore,
      uncork: ignore,
      on: ignore,
    };
    if (options.lazyConnect === false) this.#start();
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
        throw this.#doubted(named(error));
      },
    );
  }

  /** Ends the connection; with `reconnect` it is made anew. */
  disconnect(reconnect = false): void {
    if (this.status === "wait" || this.status === "end") {
      this.status = "end";
      return;
    }
    // Sent is sent, also by a client that is closed at once.
    const last = !reconnect && this.#pending > 0 && this.status === "ready" ? this.#client : undefined;
    if (last) this.#client = undefined;
    this.#lose(disconnected(), reconnect);
    if (last) close(last);
  }

  duplicate(options?: OwnOptions): OwnConnection {
    return new OwnConnection(this.#source, options);
  }

  evalsha(...args: EvalArguments): Promise<unknown> {
    return this.send(["EVALSHA", ...args.flat().map(String)]);
  }

  eval(...args: EvalArguments): Promise<unknown> {
    return this.send(["EVAL", ...args.flat().map(String)]);
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
    this.#source.onMove?.add(this.#moved);
    this.status = this.#attempts === 0 ? "connecting" : "reconnecting";
    this.#attempts++;
    const isPresent = () => this.#attempt === attempt;
    const failed = (error: unknown) => {
      if (isPresent()) this.#lose(named(error), true, true);
    };
    const connect = async () => {
      const template = await this.#source.template();
      if (!isPresent()) return;
      const client = another(template);
      this.#client = client;
      // Also of a client that is still connected: it could not read a reply, so those behind it may not be its answers.
      client.on("error", failed);
      client.on("end", () => failed(disconnected()));
      client.on("sharded-channel-moved", () => this.emit("moved"));
      client.unref();
      await meet(client);
    };
    outside(() => inTime(ATTEMPT_TIMEOUT, connect)).then(() => {
      if (isPresent()) this.#connected();
    }, failed);
  }

  /** An error that may say that the server is the wrong one by now. */
  #doubted(error: Error): Error {
    if (!this.#how.reconnectOnError?.(error)) return error;
    this.#source.doubt?.();
    if (this.status === "ready") this.disconnect(true);
    return error;
  }

  #connected(): void {
    this.#attempts = 0;
    this.#refusal = undefined;
    this.status = "ready";
    this.#arrival?.resolve(this.#client as PlainClient);
    this.#arrival = undefined;
    this.emit("connect");
    this.emit("ready");
  }

  #lose(error: Error, reconnect: boolean, isTrouble = false): void {
    const client = this.#client;
    this.#client = undefined;
    this.#attempt = undefined;
    this.#refusal = isRefusal(error) ? error : undefined;
    clearTimeout(this.#timer);
    const pause = reconnect ? this.#pauseBefore(this.#attempts + 1) : null;
    this.status = pause === null ? "end" : "reconnecting";
    if (client) destroy(client);
    if (this.#refusal || pause === null) {
      this.#arrival?.reject(error);
      this.#arrival = undefined;
    }
    if (isTrouble && this.listenerCount("error") > 0) this.emit("error", error);
    this.emit("close");
    if (pause === null) this.#ended();
    else if (this.status === "reconnecting") this.#startIn(pause);
  }

  #ended(): void {
    this.#attempts = 0;
    this.#source.onMove?.delete(this.#moved);
    this.emit("end");
  }

  #startIn(pause: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), pause).unref();
  }

  #pauseBefore(attempt: number): number | null {
    return this.#how.retryStrategy ? this.#how.retryStrategy(attempt) : PAUSE;
  }
}
