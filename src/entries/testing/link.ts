/** How the connections of a client reach a server in memory. */
import type { MemoryServer } from "./memory-server.js";

/**
 * The way of one connection to its server, until the connection is lost. In each direction messages arrive in their
 * order.
 */
export interface Wire {
  /** Calls back when a message has arrived at the server, which may be after the connection is lost. */
  toServer(arrive: () => void): void;
  /** Calls back when a message has arrived at the client. */
  toClient(arrive: () => void): void;
  /** The connection is lost. */
  close(): void;
}

export interface Connection {
  readonly status: string;
  /** Becomes ready, unless its link is down. */
  open(): void;
  /** Loses the connection: answers that are on their way do not arrive. */
  lose(): void;
}

/** The link from one client to its server: all connections of the client go up and down with it. */
export class Link {
  readonly server: MemoryServer;
  readonly connections: Set<Connection> = new Set();
  /** Makes the way of a connection that is about to open. */
  readonly wire: (connection: Connection) => Wire;
  #isUp = true;

  /** `wire`: by default it takes no time. */
  constructor(server: MemoryServer, wire?: (connection: Connection) => Wire) {
    this.server = server;
    this.wire = wire ?? (() => instantWire(server));
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  cut(): void {
    this.#isUp = false;
    for (const connection of this.connections) connection.lose();
  }

  mend(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    for (const connection of this.connections) connection.open();
  }
}

/** Commands are executed at once, and their answers come later. */
function instantWire(server: MemoryServer): Wire {
  return { toServer: (arrive) => arrive(), toClient: (arrive) => server.later(arrive), close: () => {} };
}
