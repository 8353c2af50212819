/**
 * Remembers what is wrong with a connection, as the cause of the errors of calls that got no answer. A cluster stays ready
 * when it loses a node, so the trouble of a node is over with its next answer.
 */
import { addressOf, type Connection, isCluster } from "./connection.js";
import { scrubbed } from "./failures.js";

export class Trouble {
  readonly #connection: Connection;
  /** How many answers the server at this address has given. */
  readonly #answersOf: (address: string) => number;
  /** The last error of the connection; undefined once it is ready again. */
  #last: Error | undefined;
  /** The node that {@link #last} is about, and how many answers it had given before. */
  #node: { readonly address: string; readonly answers: number } | undefined;

  constructor(connection: Connection, answersOf: (address: string) => number) {
    this.#connection = connection;
    this.#answersOf = answersOf;
    connection.on("error", (error: unknown) => this.#blame(error));
    connection.on("node error", (error: unknown, address: string) => {
      this.#blame(error, address);
      this.#node = { address, answers: answersOf(address) };
    });
    connection.on("ready", () => {
      this.#last = undefined;
    });
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
