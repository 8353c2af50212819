/**
 * Sends scripts: EVALSHA, with EVAL where the server does not know the script yet. Never `defineCommand`, which would
 * add methods to the user's client.
 */
import type { ArgumentValues, KeyValues, Script } from "../scripts/script.js";
import { encode } from "../scripts/script.js";
import type { Connection } from "./connection.js";
import { isShebangRefused } from "./failures.js";

/** A reply, and how many replicas have it. */
export interface Acknowledged {
  readonly reply: unknown;
  readonly acknowledged: number;
}

export class Sender {
  readonly #connection: Connection;
  #legacy: boolean;
  #corked = false;
  /** Scripts that this client has run: the first run of each is an EVAL, so that it costs one command. */
  readonly #known = new Set<string>();

  constructor(connection: Connection, legacy: boolean) {
    this.#connection = connection;
    this.#legacy = legacy;
  }

  /** Sends one script once; rejects with the error of ioredis. `anew`: the server did not know it. */
  send<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    keys: K,
    args: A,
    anew: boolean,
  ): Promise<unknown> {
    const { sha1 } = this.#legacy ? script.legacy : script.modern;
    if (anew || !this.#known.has(sha1)) return this.#teach(script, keys, args);
    const encoded = encode(script, keys, args);
    this.#cork();
    return this.#connection.evalsha(sha1, encoded.keys.length, ...encoded.keys, ...encoded.argv);
  }

  /**
   * Sends one script and, behind it on the same connection, a WAIT for replicas: WAIT counts the writes of its own
   * connection only. Resolves with the reply and how many replicas acknowledged.
   */
  async sendAndWait<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    keys: K,
    args: A,
    replicas: number,
    timeout: number,
  ): Promise<Acknowledged> {
    const encoded = encode(script, keys, args);
    const { text } = this.#legacy ? script.legacy : script.modern;
    const results = await this.#connection
      .pipeline()
      .eval(text, encoded.keys.length, ...encoded.keys, ...encoded.argv)
      .wait(replicas, timeout)
      .exec();
    const [ran, waited] = results ?? [];
    if (ran?.[0]) throw ran[0];
    if (!ran || !waited || waited[0]) throw waited?.[0] ?? new Error("no answer to WAIT");
    return { reply: ran[1], acknowledged: Number(waited[1]) };
  }

  async #teach<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    keys: K,
    args: A,
  ): Promise<unknown> {
    const { text, sha1 } = this.#legacy ? script.legacy : script.modern;
    const encoded = encode(script, keys, args);
    try {
      const reply = await this.#connection.eval(text, encoded.keys.length, ...encoded.keys, ...encoded.argv);
      this.#known.add(sha1);
      return reply;
    } catch (error) {
      if (this.#legacy || !isShebangRefused(error)) throw error;
      this.#legacy = true;
      return this.#teach(script, keys, args);
    }
  }

  /**
   * Lets the commands of one tick travel in one write: a write of its own for each costs more than all else here. A
   * lone command is not delayed, for the tick ends when the code that sent it has run.
   */
  #cork(): void {
    const { stream } = this.#connection;
    if (this.#corked || !stream) return;
    this.#corked = true;
    stream.cork();
    process.nextTick(() => {
      this.#corked = false;
      stream.uncork();
    });
  }
}
