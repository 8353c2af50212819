/** Remembers what is wrong with a connection, as the cause of the errors of calls that got no answer. */
import { errorMonitor } from "node:events";
import { addressOf, type Connection, isCluster } from "./connection.js";
import { onEvents } from "./connection-events.js";
import { scrubbed } from "./failures.js";

export class Trouble {
  readonly #connection: Connection;
  /** The last error of the connection; undefined once it is ready again. */
  #last: Error | undefined;
  readonly #stopListening: readonly (() => void)[];

  constructor(connection: Connection) {
    this.#connection = connection;
    const ready = () => {
      this.#last = undefined;
    };
    this.#stopListening = [
      // Not the event `error`: with a listener for it, ioredis would print no errors to users who listen to none.
      onEvents(connection, [errorMonitor], (error) => this.#blame(error)),
      // An error that nobody listens to is not emitted, but the socket remembers why it was closed.
      onEvents(connection, ["close"], () => this.#blame(connection.stream?.errored)),
      onEvents(connection, ["node error"], (error, address) => this.#blame(error, String(address))),
      onEvents(connection, ["ready"], ready),
    ];
  }

  /** Why a call got no usable answer. `refusal`: what the server said to the last one, if it said something. */
  cause(refusal: Error | undefined): Error {
    const known = this.#last ?? refusal;
    if (known) return known;
    const { status } = this.#connection;
    return new Error(
      status === "ready" ? `${this.#where} gave no answer` : `no connection to ${this.#where} (${status})`,
    );
  }

  close(): void {
    for (const stop of this.#stopListening) stop();
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
