/** The servers that a connection leads to: one, or the masters of a cluster. */
import type { Clock } from "../base/clock.js";
import type { KeyValues } from "../scripts/script.js";
import { type Connection, isCluster, masterAddress } from "./connection.js";
import { ServerHealth } from "./server-health.js";

export class Servers {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #commandTimeout: number;
  /** Where it is not a cluster. */
  readonly #only: ServerHealth | undefined;
  /** By address. */
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

  /** Whether none of the servers that owe an answer gives one. */
  get away(): boolean {
    const owing = [...this.#servers.values()].filter(({ owesAnswer }) => owesAnswer);
    return !this.connected || (owing.length > 0 && owing.every(({ away }) => away));
  }

  /** True while the server of this key does not answer: not connected, or silent for a tenth of `commandTimeout`. */
  isAway(key: string): boolean {
    return !this.connected || this.healthOf(key).away;
  }

  /** Not worth waiting for: away, or its last call was given up without an answer, however short that one's time was. */
  isUnresponsive(key: string): boolean {
    return !this.connected || this.healthOf(key).unresponsive;
  }

  /** The server of this key, as far as is known where that is; what needs no key may go to any. */
  healthOf(key: string | undefined): ServerHealth {
    if (this.#only) return this.#only;
    const address = key === undefined ? "" : masterAddress(this.#connection, key);
    let health = this.#servers.get(address);
    if (!health) {
      health = new ServerHealth(this.#clock, this.#commandTimeout);
      this.#servers.set(address, health);
    }
    return health;
  }

  /** All keys of a script are on one server; without a cluster there is only one. */
  of(keys: KeyValues | undefined): ServerHealth {
    return this.#only ?? this.healthOf(keys && Object.values(keys).flat()[0]);
  }
}
