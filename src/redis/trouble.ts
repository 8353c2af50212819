/**
 * Remembers what is wrong with a connection, as the cause of the errors of calls that got no answer. A cluster stays ready
 * when it loses a node, so the trouble of a node is over with its next answer.
 */
import { errorMonitor } from "node:events";
import { addressOf, type Connection, isCluster } from "./connection.js";
import { onEvents } from "./connection-events.js";
import { scrubbed } from "./failures.js";

export class Trouble {
  readonly #connection: Connection;
  /** How many answers the server at this address has given. */
  readonly #answersOf: (address: string) => number;
  /** The last error of the connection; undefined once it is ready again. */
  #last: Error | undefined;
  /** The node that {@link #last} is about, and how many answers it had given before. */
  #node: { readonly address: string; readonly answers: number } | undefined;
  readonly #stopListening: readonly (() => void)[];

  constructor(connection: Connection, answersOf: (address: string) => number) {
    this.#connection = connection;
    this.#answersOf = answersOf;
    const ready = () => {
      this.#last = undefined;
    };
    this.#stopListening = [
      // Not the event `error`: with a listener for it, ioredis would print no errors to users who listen to none.
      onEvents(connection, [errorMonitor], (error) => this.#blame(error)),
      // An error that nobody listens to is not emitted, but the socket remembers why it was closed.
      onEvents(connection, ["close"], () => this.#blame(connection.stream?.errored)),
      onEvents(connection, ["node error"], (error, at) => {
        const address = String(at);
        this.#blame(error, address);
        this.#node = { address, answers: answersOf(address) };
      }),
      onEvents(connection, ["ready"], ready),
    ];
  }

  /** Why a call got no usable answer. `refusal`: what the server said to the last one, if it said something. */
  cause(refusal: Error | undefined): Error {
    const node = this.#node;
    if (node && this.#answersOf(node.address) > node.answers) this.#last = this.#node = undefined;
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
    this.#node = undefined;
    const known = scrubbed(error);
    if (!known.message.includes(where)) known.message = `${where}: ${known.message}`;
    const { code } = error as NodeJS.ErrnoException;
    this.#last = code === undefined ? known : Object.assign(known, { code });
  }
}
