/**
 * Whether anybody needs the connections of a client: a command without an answer, a call that waits, a hold, a channel.
 * Then a lost connection is made again, and the process is kept alive; by a timer, for the sockets are unreferenced.
 *
 * The work that an abandoned call leaves needs them less. They are made again for it, but a process that has nothing
 * else to do may end. It may also end while nobody needs them at all.
 */
import { clearInterval, LONGEST_TIMER, setImmediate, setInterval, setTimeout } from "../base/platform.js";
import { noop } from "../base/work.js";
import { type Connection, isCluster } from "./connection.js";

/** Milliseconds before the second attempt to connect in a row, doubled for each further one up to the longest. */
const SECOND_PAUSE = 50;
const LONGEST_PAUSE = 500;

/** What has a socket: a connection, or the connection of a cluster to one node. */
type Socketed = Pick<Connection, "stream" | "on">;

export class KeepAlive {
  readonly #connections = new Set<Connection>();
  /** Keeps the process alive while it is referenced. */
  readonly #timer = setInterval(noop, LONGEST_TIMER).unref();
  readonly #hasWork: () => boolean;
  #needs = 0;

  /** `hasWork`: whether a command has no answer, be it one that is left to do. */
  constructor(hasWork: () => boolean) {
    this.#hasWork = hasWork;
  }

  /** Somebody needs the connections, until {@link release}. */
  need(): void {
    if (this.#needs++ > 0) return;
    this.#timer.ref();
    for (const connection of this.#connections) if (connection.status === "end") this.#revive(connection);
  }

  release(): void {
    if (--this.#needs === 0) this.#timer.unref();
  }

  /** Milliseconds before the n-th attempt to connect in a row; null: ioredis makes none, since its timer would hold the process. */
  readonly pauseBefore = (attempt: number): number | null => {
    if (this.#needs === 0) return null;
    return attempt === 1 ? 0 : Math.min(SECOND_PAUSE * 2 ** (attempt - 2), LONGEST_PAUSE);
  };

  /** Looks after a connection, which asks {@link pauseBefore} when it is lost. */
  add(connection: Connection): void {
    this.#connections.add(connection);
    // Also while somebody needs it: a need may come as the connection gives up. ioredis (5.4 to 6.0) can also end one
    // by Sentinel in a failover. Its failover detector closes the connector while a sentinel names the new master.
    connection.on("end", () => {
      const pause = this.#needs > 0 ? SECOND_PAUSE : LONGEST_PAUSE;
      setTimeout(() => this.#revive(connection), pause).unref();
    });
    if (isCluster(connection)) connection.on("+node", unreference);
    else unreference(connection);
  }

  /** Ends a connection. */
  end(connection: Connection): void {
    this.#connections.delete(connection);
    connection.disconnect();
  }

  /** Ends all connections. */
  close(): void {
    clearInterval(this.#timer);
    for (const connection of this.#connections) this.end(connection);
  }

  #revive(connection: Connection): void {
    const isWanted = this.#needs > 0 || this.#hasWork();
    if (isWanted && this.#connections.has(connection) && connection.status === "end")
      connection.connect().catch(noop); // its events tell why
  }
}

/** Its sockets do not keep the process alive. */
function unreference(socket: Socketed): void {
  const unref = () => socket.stream?.unref();
  socket.on("connect", unref);
  // The socket is made some ticks after it is told.
  socket.on("connecting", () => setImmediate(unref));
}
