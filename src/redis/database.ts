/**
 * Makes sure in which database scripts are run. ioredis takes a SELECT for granted: where Redis refuses it, ioredis goes
 * on in the database where it was, and tells it by an event that need not be heard. A lock there excludes nobody.
 */
import { type Connection, databaseOf, type Stream } from "./connection.js";
import { onEvents } from "./connection-events.js";

/** In these states a connection will be ready, or end, by itself. */
const COMING: ReadonlySet<string> = new Set(["connecting", "connect", "reconnecting", "close"]);

export class Database {
  readonly #connection: Connection;
  /** The database that the server has confirmed last, and on which socket. */
  #confirmed: { readonly database: number; readonly socket: Stream | undefined } | undefined;
  #confirming: Promise<void> | undefined;
  readonly #listening = new Set<() => void>();

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
    if (!this.#isSure) return this.#confirm().then(() => this.run(send));
    const { stream } = this.#connection;
    return send().then((reply) => (this.#connection.stream === stream ? reply : this.run(send)));
  }

  /** Takes its listeners off the connection. What waits for an answer waits for ever. */
  close(): void {
    for (const stop of this.#listening) stop();
  }

  get #isSure(): boolean {
    return databaseOf(this.#connection) === this.#known;
  }

  get #known(): number {
    const { stream } = this.#connection;
    const confirmed = this.#confirmed;
    return confirmed && confirmed.socket === stream && !stream?.destroyed ? confirmed.database : 0;
  }

  /** Rejects with the refusal of a SELECT that is sent from now on: one that is on its way may be out of date. */
  #confirm(): Promise<void> {
    return this.#confirming?.catch(() => (this.#isSure ? undefined : this.#begin())) ?? this.#begin();
  }

  #begin(): Promise<void> {
    this.#confirming ??= this.#select().finally(() => {
      this.#confirming = undefined;
    });
    return this.#confirming;
  }

  /**
   * Of a SELECT that a lost connection leaves unanswered ioredis may never tell the end: always while the connection is
   * not ready yet, and also later without `autoResendUnfulfilledCommands`. So it is sent when the connection is ready, and
   * its loss ends the wait.
   */
  async #select(): Promise<void> {
    const connection = this.#connection;
    if (COMING.has(connection.status)) await this.#next("ready", "end").event;
    const database = databaseOf(connection);
    const selected = Promise.resolve(connection.select?.(database)).then(() => {
      this.#confirmed = { database, socket: connection.stream };
    });
    const loss = this.#next("close");
    try {
      await Promise.race([selected, loss.event]);
    } finally {
      loss.stop();
    }
  }

  /** The next of these events of the connection. */
  #next(...events: readonly string[]): { readonly event: Promise<void>; readonly stop: () => void } {
    let stop = (): void => {};
    const event = new Promise<void>((resolve) => {
      const stopListening = onEvents(this.#connection, events, () => {
        stop();
        resolve();
      });
      stop = () => {
        this.#listening.delete(stop);
        stopListening();
      };
      this.#listening.add(stop);
    });
    return { event, stop };
  }
}
