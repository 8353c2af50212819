/**
 * This TCP proxy between ioredis and one Redis server reads RESP both ways. So a test can lose exactly the reply to one
 * command, keep one request back, or take the network away. The proxy owns its listener, its connections and the record
 * of what went over them. It reads no TLS, and no connection that uses CLIENT REPLY.
 */
import type { Server, Socket } from "node:net";
import type { Redis } from "ioredis";
import { listenOnFreePort, releasePort } from "./free-port.js";
import { ProxyConnection } from "./proxy-connection.js";
import {
  ArmedFault,
  ArmedHold,
  anyCommand,
  type Fault,
  type FaultKind,
  type HeldRequest,
  type Matcher,
} from "./proxy-faults.js";
import type { Endpoint } from "./redis-call.js";
import { type ClientOptions, TrackedClients } from "./tracked-clients.js";

export interface ProxyOptions {
  /** With false the proxy keeps no record of the commands, for runs of millions. */
  readonly record?: boolean;
}

export interface RecordedCommand {
  /** Number of the connection, from 1 in the order they were made. */
  readonly connection: number;
  /** The command's words, the name in capitals. */
  readonly command: readonly string[];
  /** `swallowed`: lost in a black hole. `cut`: executed, the reply is lost. `drop`, `hold`: not executed (yet). */
  readonly fate: "passed" | "swallowed" | FaultKind;
}

/** Starts a proxy on a free port of 127.0.0.1. `target` may be a RedisServer. */
export async function startProxy(target: Endpoint, options: ProxyOptions = {}): Promise<FaultProxy> {
  const { host, port: to, password } = target;
  const { server, port } = await listenOnFreePort();
  return new FaultProxy({ host, port: to, password }, server, port, options);
}

export class FaultProxy {
  readonly host: string = "127.0.0.1";
  readonly port: number;
  readonly target: Endpoint;
  readonly #listener: Server;
  readonly #records: boolean;
  #commands: RecordedCommand[] = [];
  readonly #clients = new TrackedClients();
  readonly #connections = new Set<ProxyConnection>();
  /** Client sockets that were accepted while the proxy was a black hole. */
  readonly #lost = new Set<Socket>();
  readonly #faults = new Set<ArmedFault>();
  #delays: { readonly ms: number; readonly match: Matcher | undefined }[] = [];
  #connectionCount = 0;
  #silent = false;
  #stalled = false;
  #refusing = false;

  /** Takes over a listener that already listens; `startProxy` makes one. */
  constructor(target: Endpoint, listener: Server, port: number, { record = true }: ProxyOptions) {
    this.target = target;
    this.port = port;
    this.#records = record;
    this.#listener = listener;
    listener.on("connection", (socket) => this.#accept(socket));
    listener.unref();
  }

  /** A client through this proxy, with an `error` listener; disconnected by `stop`. */
  connect(options: ClientOptions = {}): Redis {
    const auth = this.target.password === undefined ? {} : { password: this.target.password };
    return this.#clients.redis({ host: this.host, port: this.port, ...auth, ...options });
  }

  /** The server executes the command; its reply is swallowed and the client's connection is reset. */
  cutReplyOf(match: Matcher, times = 1): Fault {
    return this.#arm(new ArmedFault("cut", match, times));
  }

  /** The command never reaches the server, and the client's connection is reset. */
  dropRequest(match: Matcher, times = 1): Fault {
    return this.#arm(new ArmedFault("drop", match, times));
  }

  /**
   * The client's connection is reset with the command still on its way: `deliver()` lets it arrive, as late as the
   * test likes. Neither `cut` nor `restore` loses it.
   */
  holdRequest(match: Matcher): HeldRequest {
    return this.#arm(new ArmedHold(match));
  }

  /** Delays replies by `ms` until `restore`: those to commands that match, or all replies and pushes. */
  delayReplies(ms: number, match?: Matcher): void {
    this.#delays.push({ ms, match });
  }

  /** Loses all bytes and closes in both directions until `restore`; new connections are accepted but hear nothing. */
  blackhole(): void {
    this.#silent = true;
  }

  /** Holds all bytes back until `restore`, which then lets them through: a partition that heals. */
  stall(): void {
    this.#stalled = true;
    for (const connection of this.#connections) connection.stall();
  }

  /** Resets all connections, and every new connection at once, until `restore`. */
  refuse(): void {
    this.#refusing = true;
    this.cut();
  }

  /** Resets all connections now; clients can come back at once. */
  cut(): void {
    for (const connection of this.#connections) connection.reset();
    for (const socket of this.#lost) socket.resetAndDestroy();
  }

  /**
   * Ends delays, black hole, stall and refusal. Connections that lost bytes are reset, because TCP never continues after
   * a gap. Faults that wait for a command stay armed.
   */
  restore(): void {
    this.#delays = [];
    this.#silent = false;
    this.#stalled = false;
    this.#refusing = false;
    for (const connection of this.#connections) connection.restore();
    for (const socket of this.#lost) socket.resetAndDestroy();
  }

  /** How many connections lead to the server now. */
  get openConnections(): number {
    return this.#connections.size;
  }

  /** All commands that clients sent, in order, except those that a connection sent after a dropped or held command. */
  get commands(): readonly RecordedCommand[] {
    return this.#commands;
  }

  /** How many matching commands were sent since the start or the last `clear`. */
  count(match: Matcher = anyCommand): number {
    return this.#commands.filter(({ command }) => match(command)).length;
  }

  /** Forgets the commands so far. */
  clear(): void {
    this.#commands = [];
  }

  /** Ends everything, also withheld requests. */
  async stop(): Promise<void> {
    this.#clients.disconnectAll();
    this.#silent = false;
    const ended = [...this.#connections].map((connection) => connection.closed);
    for (const connection of this.#connections) connection.destroy();
    for (const socket of this.#lost) socket.destroy();
    await Promise.all([...ended, new Promise((resolve) => this.#listener.close(resolve))]);
    releasePort(this.port);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #arm<T extends ArmedFault>(fault: T): T {
    this.#faults.add(fault);
    void fault.done.then(() => this.#faults.delete(fault));
    return fault;
  }

  #accept(socket: Socket): void {
    if (this.#refusing) {
      socket.resetAndDestroy();
      return;
    }
    if (this.#silent) {
      this.#lost.add(socket);
      socket.on("error", () => {}).once("close", () => this.#lost.delete(socket));
      socket.resume();
      return;
    }
    const connection = new ProxyConnection(++this.#connectionCount, socket, this.target, {
      isSilent: () => this.#silent,
      onRequest: (id, command) => this.#onRequest(id, command),
      delayOf: (command) => this.#delayOf(command),
    });
    this.#connections.add(connection);
    void connection.closed.then(() => this.#connections.delete(connection));
    if (this.#stalled) connection.stall();
  }

  #onRequest(connection: number, command: readonly string[]): ArmedFault | undefined {
    const fault = this.#silent ? undefined : [...this.#faults].find((armed) => armed.claim(command));
    const fate = fault?.kind ?? (this.#silent ? "swallowed" : "passed");
    if (this.#records) this.#commands.push({ connection, command, fate });
    return fault;
  }

  #delayOf(command: readonly string[] | undefined): number {
    const rule = this.#delays.find(
      ({ match }) => match === undefined || (command !== undefined && match(command)),
    );
    return rule?.ms ?? 0;
  }
}
