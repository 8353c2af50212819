/**
 * A client that the user has given, as the core sees a connection. The client says where the server is, and for how
 * long the library may talk to it: the library connects it at the first call if it never was connected, and never
 * closes it. What the library sends goes over connections of its own, which end with the last LockClient. The library
 * never takes its listeners off a client, because in node-redis that can take others off with them.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { errorMonitor } from "node:events";
import { setTimeout } from "../../base/platform.js";
import type { Connection, ConnectionOptions } from "../../redis/connection.js";
import { ignore } from "./clients.js";
import type { CommandList } from "./command-list.js";
import { Emitter } from "./emitter.js";

/** Commands that name no key: any server can answer them. */
const KEYLESS = new Set(["INFO", "PING", "PUBLISH", "PUBSUB", "SCAN"]);
const SCRIPTS = new Set(["EVAL", "EVALSHA"]);

/** Milliseconds between two checks for the last answers, and for how long these are waited for. */
const REST_CHECK = 50;
const LONGEST_WORK = 10_000;

/**
 * Runs a function outside every scope and request: a socket must keep neither that of the call that makes it, nor that
 * in which the client was given. This file is loaded in neither, as a rule.
 */
const outside = AsyncLocalStorage.snapshot();

/** The key, or sharded channel, that says which server of a cluster a command is for. */
function keyOf(args: readonly string[]): string | undefined {
  const name = args[0]?.toUpperCase() ?? "";
  if (KEYLESS.has(name)) return undefined;
  return SCRIPTS.has(name) ? args[3] : args[1];
}

/** The connection that commands go over. */
export interface Link {
  readonly status: string;
  /** Commands that have no answer yet. */
  readonly pending: number;
  /** Sends a command as soon as the link is connected; `key` says to which server of a cluster. */
  send(args: readonly string[], key?: string): Promise<unknown>;
  pipeline(): CommandList;
  connect(): Promise<void>;
  disconnect(): void;
}

export abstract class GivenConnection extends Emitter implements Connection {
  abstract readonly options: ConnectionOptions;
  protected abstract readonly link: Link;
  /** The given client is connected, or on its way there. */
  protected abstract readonly isOpen: boolean;
  /** The given client was connected once. */
  #wasOpen = false;
  /** The user has closed the client, or its `reconnectStrategy` has given up: only the user connects it again. */
  #isEnded = false;
  /** While the library connects the given client: settles as that succeeds or fails. */
  protected opening: Promise<void> | undefined;
  #isResting = false;

  abstract duplicate(options?: object): Connection;
  /** Connects the given client. */
  protected abstract open(): Promise<unknown>;

  get status(): string {
    if (this.#isEnded) return "end";
    // The connection rests while there is no LockClient.
    return this.link.status === "end" ? "wait" : this.link.status;
  }

  evalsha(sha1: string, keys: number, ...rest: string[]): Promise<unknown> {
    return this.#send(["EVALSHA", sha1, String(keys), ...rest], rest[0]);
  }

  eval(text: string, keys: number, ...rest: string[]): Promise<unknown> {
    return this.#send(["EVAL", text, String(keys), ...rest], rest[0]);
  }

  call(...args: string[]): Promise<unknown> {
    return this.#send(args, keyOf(args));
  }

  pipeline(): CommandList {
    return this.link.pipeline();
  }

  async connect(): Promise<void> {
    if (this.#isEnded) throw new Error("the client was closed");
    this.start();
    await this.link.connect();
  }

  disconnect(): void {
    // The client is the user's.
  }

  override off(event: string | symbol, listener: (...args: never[]) => void): this {
    super.off(event, listener);
    if (!this.#isResting && this.eventNames().length === 0) this.#rest();
    return this;
  }

  /** Connects the given client if it is not, unless its user has closed it. */
  protected begin(): void {
    this.checkOpen();
    if (this.isOpen || this.opening || this.#isEnded) return;
    const over = () => {
      this.opening = undefined;
    };
    this.opening = outside(() => this.open()).then(over, over);
  }

  /** Connects what is not connected. */
  protected start(): void {
    this.begin();
    if (this.link.status === "wait" || this.link.status === "end")
      void outside(() => this.link.connect().catch(ignore));
  }

  #send(args: readonly string[], key: string | undefined): Promise<unknown> {
    if (!this.isOpen) this.checkOpen();
    if (this.#isEnded) return Promise.reject(new Error("the client was closed"));
    if (!this.isOpen || this.link.status !== "ready") this.start();
    return this.link.send(args, key);
  }

  /** Nobody listens any more, so the last LockClient has closed: ends the link when the last answers have come. */
  #rest(): void {
    this.#isResting = true;
    let waited = 0;
    const check = () => {
      if (this.eventNames().length === 0) {
        waited += REST_CHECK;
        if (this.link.pending > 0 && waited < LONGEST_WORK) return void setTimeout(check, REST_CHECK).unref();
        this.link.disconnect();
      }
      this.#isResting = false;
    };
    setTimeout(check, REST_CHECK).unref();
  }

  /** The given client has been connected. */
  protected opened(): void {
    this.#wasOpen = true;
    if (!this.#isEnded) return;
    this.#isEnded = false;
    if (this.eventNames().length > 0) this.start();
  }

  /** Called at everything that may mean that the given client was closed. */
  protected checkOpen(): void {
    if (this.#wasOpen) this.closed();
  }

  /** The given client was closed, though it may never have been connected; unless it is open again by now. */
  protected closed(): void {
    if (this.#isEnded || this.isOpen) return;
    this.#isEnded = true;
    this.link.disconnect();
    this.emit("end");
  }

  /** Passes on trouble of a connection, for the texts of errors. Not as `error`: nobody has to listen to that. */
  protected noteError(error: unknown): void {
    this.emit(errorMonitor, error);
  }
}
