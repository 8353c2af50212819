/**
 * Sends scripts: EVALSHA, with EVAL where the server does not know the script yet. Never `defineCommand`, which would
 * add methods to the user's client.
 */
import type { ArgumentValues, KeyValues, Script } from "../scripts/script.js";
import { encode } from "../scripts/script.js";
import type { Connection } from "./connection.js";
import { isMissingScript, isShebangRefused } from "./failures.js";

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

  /** Sends one script once; rejects with the error of ioredis. */
  async send<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    keys: K,
    args: A,
  ): Promise<unknown> {
    const encoded = encode(script, keys, args);
    const count = encoded.keys.length;
    const rest = encoded.keys.concat(encoded.argv);
    const { text, sha1 } = this.#legacy ? script.legacy : script.modern;
    this.#cork();
    if (this.#known.has(sha1)) {
      try {
        return await this.#connection.evalsha(sha1, count, ...rest);
      } catch (error) {
        if (!isMissingScript(error)) throw error;
      }
    }
    try {
      const reply = await this.#connection.eval(text, count, ...rest);
      this.#known.add(sha1);
      return reply;
    } catch (error) {
      if (this.#legacy || !isShebangRefused(error)) throw error;
      this.#legacy = true;
      return this.send(script, keys, args);
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
  ): Promise<{ reply: unknown; acknowledged: number }> {
    const encoded = encode(script, keys, args);
    const rest = encoded.keys.concat(encoded.argv);
    const { text } = this.#legacy ? script.legacy : script.modern;
    const results = await this.#connection
      .pipeline()
      .eval(text, encoded.keys.length, ...rest)
      .wait(replicas, timeout)
      .exec();
    const [script_, wait] = results ?? [];
    if (script_?.[0]) throw script_[0];
    if (!script_ || !wait || wait[0]) throw wait?.[0] ?? new Error("no answer to WAIT");
    return { reply: script_[1], acknowledged: Number(wait[1]) };
  }
}
