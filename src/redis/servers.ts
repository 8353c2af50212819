/** The servers that a connection leads to: one, or the masters of a cluster. */
import type { Clock } from "../base/clock.js";
import { type Connection, isCluster, masterAddress, nodeAt, reset } from "./connection.js";
import { ServerHealth } from "./server-health.js";

/** Milliseconds that an attempt to connect has at least, however short `commandTimeout` is. */
const SHORTEST_ATTEMPT = 1_000;

export class Servers {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #commandTimeout: number;
  /** The one server, if the connection is no cluster. */
  readonly #only: ServerHealth | undefined;
  /** All servers, by address. */
  readonly #servers = new Map<string, ServerHealth>();

  /** `commandTimeout`: milliseconds. */
  constructor(connection: Connection, clock: Clock, commandTimeout: number) {
    this.#connection = connection;
    this.#clock = clock;
    this.#commandTimeout = commandTimeout;
    if (!isCluster(connection)) this.#only = this.healthOf(undefined);
  }

  get connected(): boolean {
    return this.#connection.status === "ready";
  }

  /** True if the connection is not ready, or if every server that owes an answer is away. */
  get away(): boolean {
    const owing = [...this.#servers.values()].filter(({ owesAnswer }) => owesAnswer);
    return !this.connected || (owing.length > 0 && owing.every(({ away }) => away));
  }

  /** What a server that owes an answer said instead. */
  get refusal(): Error | undefined {
    for (const { owesAnswer, refusal } of this.#servers.values()) if (owesAnswer && refusal) return refusal;
    return undefined;
  }

  /** Closes the connections to servers that owe an answer and have been silent for `commandTimeout`. */
  resetSilent(): void {
    const least = this.connected ? 0 : SHORTEST_ATTEMPT;
    for (const [address, health] of this.#servers) {
      if (!health.isSilentFor(Math.max(this.#commandTimeout, least))) continue;
      health.reset();
      const silent = isCluster(this.#connection) ? nodeAt(this.#connection, address) : this.#connection;
      if (silent) reset(silent);
    }
  }

  /** True if the server of this key is not connected, or {@link ServerHealth.unresponsive}. */
  isUnresponsive(key: string): boolean {
    return !this.connected || this.healthOf(key).unresponsive;
  }

  /**
   * The server of this key, by the address that is known now: that of all keys of a script. A command without a key may
   * go to any server of a cluster.
   */
  healthOf(key: string | undefined): ServerHealth {
    return this.#only ?? this.at(key === undefined ? "" : masterAddress(this.#connection, key));
  }

  at(address: string): ServerHealth {
    let health = this.#servers.get(address);
    if (!health) {
      health = new ServerHealth(this.#clock, this.#commandTimeout);
      this.#servers.set(address, health);
    }
    return health;
  }
}
