/**
 * Makes sure in which database scripts are run. ioredis takes a SELECT for granted: where Redis refuses it, ioredis goes
 * on in the database where it was, and tells it by an event that need not be heard. A lock there excludes nobody.
 */
import { type Connection, databaseOf, type Stream } from "./connection.js";

export class Database {
  readonly #connection: Connection;
  /** The database that the server has confirmed last, and on which socket. */
  #confirmed: { readonly database: number; readonly socket: Stream | undefined } | undefined;
  #confirming: Promise<void> | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Whether the connection is for database 0, and is there: every socket is at first. */
  get isFirst(): boolean {
    return databaseOf(this.#connection) === 0 && this.#known === 0;
  }

  /**
   * Sends once the server has confirmed the database. What is on its way as the connection is lost ioredis sends on the
   * next one, perhaps to another database: such a reply is not believed, and all is sent once more.
   */
  run<T>(send: () => Promise<T>): Promise<T> {
    if (this.isFirst) return send();
    if (databaseOf(this.#connection) !== this.#known) return this.#confirm().then(() => this.run(send));
    const { stream } = this.#connection;
    return send().then((reply) => (this.#connection.stream === stream ? reply : this.run(send)));
  }

  get #known(): number {
    const { stream } = this.#connection;
    const confirmed = this.#confirmed;
    return confirmed && confirmed.socket === stream && !stream?.destroyed ? confirmed.database : 0;
  }

  #confirm(): Promise<void> {
    this.#confirming ??= this.#select().finally(() => {
      this.#confirming = undefined;
    });
    return this.#confirming;
  }

  async #select(): Promise<void> {
    const database = databaseOf(this.#connection);
    await this.#connection.select?.(database);
    this.#confirmed = { database, socket: this.#connection.stream };
  }
}
