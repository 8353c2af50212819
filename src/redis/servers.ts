/**
 * What is known of the servers that a connection leads to, one or the masters of a cluster: which of them gives no answer,
 * and what went wrong last.
 */
import type { Clock } from "../base/clock.js";
import { addressOf, type Connection, isCluster, lookForMasters, masterAddress, reset } from "./connection.js";
import { scrubbed } from "./failures.js";

/** The share of `commandTimeout` for which a server may owe an answer and be silent before it counts as away. */
const SHARE_OF_TIMEOUT = 1 / 10;
/** Milliseconds that an attempt to connect has at least, however short `commandTimeout` is. */
const SHORTEST_ATTEMPT = 1_000;
/** Milliseconds: a call is timed from a moment before it is sent. */
const TOLERANCE = 2;

/** Since when a server owes an answer that owes none. */
const NOTHING = Number.POSITIVE_INFINITY;

/** A command that has no answer yet. */
interface Asking {
  /** The server that owes the answer. */
  readonly server: Server | undefined;
  /** Since when that owes it, in monotonic milliseconds. */
  readonly askedAt: number;
}

/** The commands without an answer. */
interface Open {
  all(): readonly Asking[];
}

/** What went wrong last. It is over once the connection is ready again, or the server that it is about answers. */
interface Trouble {
  readonly error: Error;
  readonly server: Server | undefined;
  /** Monotonic milliseconds. */
  readonly at: number;
}

/** What is known of one server; all times in monotonic milliseconds. */
export class Server {
  /** When it answered last, or was reset; after a call was given up, since when it is silent. */
  #silentSince = 0;
  /** A call was given up without an answer, and none has come since. */
  #gaveUp = false;
  /** When it gave its last answer that can be used. */
  answeredAt = 0;
  readonly #open: Open;

  constructor(open: Open) {
    this.#open = open;
  }

  get owesAnswer(): boolean {
    return this.#owedSince < NOTHING;
  }

  /** True if it owes an answer, and has been silent for longer than so many milliseconds, or than a call had time. */
  isAway(ms: number, now: number): boolean {
    return this.#gaveUp ? this.owesAnswer : this.isSilentFor(ms, now);
  }

  /** True if it owes an answer, and has been silent for longer than so many milliseconds. */
  isSilentFor(ms: number, now: number): boolean {
    if (now - this.#silentSince <= ms) return false;
    const owedSince = this.#owedSince;
    return owedSince < NOTHING && (this.#gaveUp || now - owedSince > ms);
  }

  /** Its connection is closed because of its silence: the next one gets as much time. */
  reset(now: number): void {
    this.#gaveUp = true;
    this.#silentSince = now;
  }

  /** Since when it owes an answer; {@link NOTHING} if it owes none. */
  get #owedSince(): number {
    let since = NOTHING;
    for (const { server, askedAt } of this.#open.all()) if (server === this) since = Math.min(since, askedAt);
    return since;
  }

  /** The server has given an answer that can be used. */
  answered(now: number): void {
    this.#gaveUp = false;
    this.#silentSince = now;
    this.answeredAt = now;
  }

  /** No answer came in time to what it was asked at `askedAt`. */
  gaveUp(askedAt: number): void {
    if (!this.#gaveUp) this.#silentSince = Math.max(this.#silentSince, askedAt);
    this.#gaveUp = true;
  }
}

export class Servers {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #commandTimeout: number;
  readonly #open: Open;
  /** The one server, if the connection is no cluster. */
  readonly #only: Server | undefined;
  /** All servers, by address. */
  readonly #servers = new Map<string, Server>();
  #trouble: Trouble | undefined;

  /** `commandTimeout`: milliseconds. */
  constructor(connection: Connection, clock: Clock, commandTimeout: number, open: Open) {
    this.#connection = connection;
    this.#clock = clock;
    this.#commandTimeout = commandTimeout;
    this.#open = open;
    if (!isCluster(connection)) this.#only = this.at("");
    connection.on("error", (error: unknown) => {
      // What a cluster says of itself, that no node is left, tells less than the error of the last one.
      if (this.#only || !this.#trouble) this.#blame(error, this.#where);
    });
    // A cluster stays ready when it loses a node.
    connection.on("node error", (error: unknown, address: string) =>
      this.#blame(error, address, this.at(address)),
    );
    connection.on("ready", () => {
      this.#trouble = undefined;
    });
  }

  get connected(): boolean {
    return this.#connection.status === "ready";
  }

  /** True if the connection is not ready, or if every server that owes an answer is away. */
  get away(): boolean {
    const owing = [...this.#servers.values()].filter(({ owesAnswer }) => owesAnswer);
    return !this.connected || (owing.length > 0 && owing.every((server) => this.#isAway(server)));
  }

  /** True if the connection is not ready, or the server of this key is away. */
  isAway(key: string): boolean {
    return !this.connected || this.#isAway(this.of(key));
  }

  #isAway(server: Server): boolean {
    return server.isAway(this.#commandTimeout * SHARE_OF_TIMEOUT, this.#clock.mono());
  }

  /**
   * The server of this key, by the address that is known now: that of all keys of a script. A command without a key may
   * go to any server of a cluster.
   */
  of(key: string | undefined): Server {
    return this.#only ?? this.at(key === undefined ? "" : masterAddress(this.#connection, key));
  }

  at(address: string): Server {
    const server = this.#servers.get(address) ?? new Server(this.#open);
    this.#servers.set(address, server);
    return server;
  }

  /** A command got no answer in time: connections to servers that are silent for `commandTimeout` are made anew. */
  resetSilent(): void {
    const ms = Math.max(this.#commandTimeout, this.connected ? 0 : SHORTEST_ATTEMPT) - TOLERANCE;
    const now = this.#clock.mono();
    for (const [address, server] of this.#servers) {
      if (!server.isSilentFor(ms, now)) continue;
      server.reset(now);
      reset(this.#connection, address);
    }
    lookForMasters(this.#connection);
  }

  /** Why a call got no usable answer, as far as is known. */
  get cause(): Error {
    const { status } = this.#connection;
    const silence =
      status === "ready" ? `${this.#where} gave no answer` : `no connection to ${this.#where} (${status})`;
    const { error, server, at = 0 } = this.#trouble ?? {};
    return error && !(server && server.answeredAt > at) ? error : new Error(silence);
  }

  /** Something went wrong; with a server if it is about one. */
  note(error: Error, server?: Server): void {
    this.#trouble = { error, server, at: this.#clock.mono() };
  }

  /** Where the connection leads to. */
  get #where(): string {
    const { options } = this.#connection;
    if (isCluster(this.#connection)) return "the cluster";
    if (options.path) return options.path;
    return options.sentinels ? "the master of the sentinels" : addressOf(this.#connection);
  }

  #blame(error: unknown, where: string, server?: Server): void {
    if (!(error instanceof Error)) return;
    const known = scrubbed(error);
    if (!known.message.includes(where)) known.message = `${where}: ${known.message}`;
    const { code } = error as NodeJS.ErrnoException;
    this.note(code === undefined ? known : Object.assign(known, { code }), server);
  }
}
