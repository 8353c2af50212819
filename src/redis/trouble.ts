/**
 * Remembers what is wrong with a connection, as the cause of the errors of calls that got no answer. A cluster stays ready
 * when it loses a node, so the trouble of a node is over with its next answer.
 */
import { noop } from "../base/work.js";
import { addressOf, type Connection, isCluster } from "./connection.js";
import { scrubbed } from "./failures.js";
import type { Servers } from "./servers.js";

export class Trouble {
  readonly #connection: Connection;
  readonly #servers: Servers;
  /** The last error of the connection; undefined once it is over. */
  #last: Error | undefined;
  /** Stops the look-out for the answer of the node that {@link #last} is about. */
  #stop: () => void = noop;

  constructor(connection: Connection, servers: Servers) {
    this.#connection = connection;
    this.#servers = servers;
    connection.on("error", (error: unknown) => this.#blame(error, this.#where));
    connection.on("node error", (error: unknown, address: string) => {
      this.#blame(error, address);
      this.#stop = servers.at(address).onAnswer(() => this.#over());
    });
    connection.on("ready", () => this.#over());
  }

  /** Why a call got no usable answer: the last error, or what a server said to the last one. */
  get cause(): Error {
    const known = this.#last ?? this.#servers.refusal;
    if (known) return known;
    const { status } = this.#connection;
    return new Error(
      status === "ready" ? `${this.#where} gave no answer` : `no connection to ${this.#where} (${status})`,
    );
  }

  /** Where the connection leads to. */
  get #where(): string {
    const { options } = this.#connection;
    if (isCluster(this.#connection)) return "the cluster";
    if (options.path) return options.path;
    return options.sentinels ? "the master of the sentinels" : addressOf(this.#connection);
  }

  #over(): void {
    this.#stop();
    this.#last = undefined;
  }

  #blame(error: unknown, where: string): void {
    if (!(error instanceof Error)) return;
    this.#over();
    const known = scrubbed(error);
    if (!known.message.includes(where)) known.message = `${where}: ${known.message}`;
    const { code } = error as NodeJS.ErrnoException;
    this.#last = code === undefined ? known : Object.assign(known, { code });
  }
}
