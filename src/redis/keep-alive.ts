/**
 * Whether anybody needs the connections of a client: a command without an answer, a call that waits, a hold, a channel.
 *
 * While somebody does, a lost connection is made again, and its socket keeps the process alive. Otherwise neither: a
 * process that holds and asks nothing ends by itself, also if the server is away.
 */
import { clearTimeout, setTimeout } from "../base/platform.js";
import { noop } from "../base/work.js";
import { type Connection, isCluster } from "./connection.js";

/** Milliseconds before the second attempt to connect in a row, doubled for each further one up to the longest. */
const SECOND_PAUSE = 50;
const LONGEST_PAUSE = 500;

/** What has a socket: a connection, or the connection of a cluster to one node. */
type Socketed = Pick<Connection, "stream" | "on">;

export class KeepAlive {
  readonly #connections = new Set<Connection>();
  readonly #sockets = new Set<Socketed>();
  readonly #revivals = new Map<Connection, NodeJS.Timeout>();
  #needs = 0;
  #isClosed = false;

  /** Somebody needs the connections, until {@link release}. */
  need(): void {
    if (this.#needs++ > 0) return;
    for (const socket of this.#sockets) socket.stream?.ref();
    for (const connection of this.#connections) this.#revive(connection);
  }

  release(): void {
    if (--this.#needs === 0) for (const socket of this.#sockets) socket.stream?.unref();
  }

  /** Milliseconds before the n-th attempt to connect in a row; null: there is none, since nobody needs it. */
  readonly pauseBefore = (attempt: number): number | null => {
    if (!this.#isNeeded) return null;
    return attempt === 1 ? 0 : Math.min(SECOND_PAUSE * 2 ** (attempt - 2), LONGEST_PAUSE);
  };

  /** Looks after a connection, which asks {@link pauseBefore} when it is lost. */
  add(connection: Connection): void {
    this.#connections.add(connection);
    // A need may come while the connection gives up. And ioredis (5.4 to 6.0) can end a connection by Sentinel for good in
    // a failover: its failover detector closes the connector while a sentinel names the new master.
    connection.on("end", () => {
      if (this.#isNeeded) this.#revivals.set(connection, setTimeout(() => this.#revive(connection), SECOND_PAUSE));
    });
    if (!isCluster(connection)) return this.#addSocket(connection);
    connection.on("+node", (node: Socketed) => this.#addSocket(node));
    connection.on("-node", (node: Socketed) => this.#sockets.delete(node));
  }

  /** Ends a connection. */
  end(connection: Connection): void {
    clearTimeout(this.#revivals.get(connection));
    this.#revivals.delete(connection);
    this.#connections.delete(connection);
    this.#sockets.delete(connection);
    connection.disconnect();
  }

  /** Ends all connections. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#connections) this.end(connection);
  }

  get #isNeeded(): boolean {
    return this.#needs > 0 && !this.#isClosed;
  }

  #revive(connection: Connection): void {
    if (this.#isNeeded && connection.status === "end") connection.connect().catch(noop); // its events tell why
  }

  #addSocket(socket: Socketed): void {
    this.#sockets.add(socket);
    socket.on("connect", () => {
      if (!this.#isNeeded) socket.stream?.unref();
    });
  }
}
