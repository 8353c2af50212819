/** What is wrong with a connection, as far as is known: the cause of calls that got no answer. */
import { errorMonitor } from "node:events";
import { addressOf, type Connection, isCluster } from "./connection.js";
import { scrubbed } from "./failures.js";

export class Trouble {
  readonly #connection: Connection;
  /** Its last error; undefined once it is ready again. */
  #last: Error | undefined;
  readonly #listeners: readonly [event: string | symbol, listener: (...args: never[]) => void][] = [
    // Not `error`, since a listener of that keeps ioredis from telling who listens to none.
    [errorMonitor, (error: unknown) => this.#blame(error)],
    // An error that nobody listens to is not emitted, but the socket remembers why it was closed.
    ["close", () => this.#blame(this.#connection.stream?.errored)],
    ["node error", (error: unknown, address: unknown) => this.#blame(error, String(address))],
    [
      "ready",
      () => {
        this.#last = undefined;
      },
    ],
  ];

  constructor(connection: Connection) {
    this.#connection = connection;
    for (const [event, listener] of this.#listeners) connection.on(event, listener);
  }

  /** Why a call got no answer. */
  get cause(): Error {
    if (this.#last) return this.#last;
    const { status } = this.#connection;
    return new Error(
      status === "ready" ? `${this.#where} gave no answer` : `no connection to ${this.#where} (${status})`,
    );
  }

  close(): void {
    for (const [event, listener] of this.#listeners) this.#connection.off(event, listener);
  }

  /** Where the connection leads to. */
  get #where(): string {
    const { options } = this.#connection;
    if (isCluster(this.#connection)) return "the cluster";
    if (options.path) return options.path;
    return options.sentinels ? "the master of the sentinels" : addressOf(this.#connection);
  }

  #blame(error: unknown, where: string = this.#where): void {
    if (!(error instanceof Error)) return;
    const known = scrubbed(error);
    if (!known.message.includes(where)) known.message = `${where}: ${known.message}`;
    const { code } = error as NodeJS.ErrnoException;
    this.#last = code === undefined ? known : Object.assign(known, { code });
  }
}
