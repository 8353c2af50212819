/**
 * Sends scripts: EVALSHA, with EVAL where the server does not know the script yet. Never `defineCommand`, which would
 * add methods to the user's client.
 */
import { nextTick } from "../base/platform.js";
import {
  type ArgumentValues,
  type EvalArguments,
  encode,
  type KeyValues,
  type Script,
  type ScriptText,
} from "../scripts/script.js";
import type { Connection, Stream } from "./connection.js";
import { isShebangRefused } from "./failures.js";

const COMMANDS_PER_WRITE = 16;

/** A reply, and how many replicas have it. */
export interface Acknowledged {
  readonly reply: unknown;
  readonly acknowledged: number;
}

export class Sender {
  readonly #connection: Connection;
  #legacy: boolean;
  /** The socket that it has written to in this tick, and how many commands have been corked there. */
  #tick: { readonly stream: Stream; corked: number } | undefined;
  /** How many scripts it has sent. */
  sent = 0;
  /** Scripts that this client has run: the first run of each is an EVAL, so that it costs one command. */
  readonly #known = new Set<string>();

  constructor(connection: Connection, legacy: boolean) {
    this.#connection = connection;
    this.#legacy = legacy;
  }

  /**
   * Sends one script once; rejects with the error of ioredis. `anew`: the server did not know it.
   * @throws at once, known or new, what {@link encode} refuses
   */
  send<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    keys: K,
    args: A,
    anew: boolean,
  ): Promise<unknown> {
    const form = this.#legacy ? script.legacy : script.modern;
    const isNew = anew || !this.#known.has(form.sha1);
    const command = encode(isNew ? form.text : form.sha1, script, keys, args);
    this.sent++;
    if (isNew) {
      // By what is sent: the form of another call may have been refused meanwhile.
      const again = form === script.legacy ? undefined : () => this.send(script, keys, args, true);
      return this.#teach(form, command, again);
    }
    this.#cork();
    return this.#connection.evalsha(...command);
  }

  /** What is sent in this tick from now on travels together, the first command too, so that nobody else's comes between. */
  gather(): void {
    const { stream } = this.#connection;
    if (stream && stream !== this.#tick?.stream) this.#beginTick(stream);
  }

  /** An EVAL that is ready to be sent. */
  prepare<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    keys: K,
    args: A,
  ): EvalArguments {
    return encode((this.#legacy ? script.legacy : script.modern).text, script, keys, args);
  }

  /**
   * Sends scripts and, behind them on the same connection, a WAIT for replicas: WAIT counts the writes of its own
   * connection only. On a cluster all keys must be on one server. Resolves with the error or reply of each script, and
   * how many replicas acknowledged all of them.
   */
  async sendAndWait(
    scripts: readonly EvalArguments[],
    replicas: number,
    timeout: number,
  ): Promise<{ replies: [Error | null, unknown][]; acknowledged: number }> {
    const pipeline = this.#connection.pipeline();
    this.sent += scripts.length;
    for (const script of scripts) pipeline.eval(...script);
    const replies = (await pipeline.wait(replicas, timeout).exec()) ?? [];
    const waited = replies.pop();
    // What a script says of itself tells more: a replica refuses both.
    const refused = replies.find(([error]) => error)?.[0];
    if (!waited || waited[0]) throw refused ?? waited?.[0] ?? new Error("no answer to WAIT");
    return { replies, acknowledged: Number(waited[1]) };
  }

  /** `again`: sends it in the form for servers before Redis 7, if this is not that. */
  async #teach(
    { sha1 }: ScriptText,
    command: EvalArguments,
    again: (() => Promise<unknown>) | undefined,
  ): Promise<unknown> {
    try {
      const reply = await this.#connection.eval(...command);
      this.#known.add(sha1);
      return reply;
    } catch (error) {
      if (!again || !isShebangRefused(error)) throw error;
      this.#legacy = true;
      return again();
    }
  }

  /**
   * Lets the commands of one tick travel in few writes: a write of its own for each costs more than all else here. The
   * first goes at once, as it may be the only one; and not all others wait for the last one, so that the server works while
   * the rest is written.
   */
  #cork(): void {
    const { stream } = this.#connection;
    if (!stream) return;
    const tick = this.#tick;
    if (stream !== tick?.stream) return this.#beginTick(stream);
    if (tick.corked++ % COMMANDS_PER_WRITE > 0) return;
    if (tick.corked > 1) stream.uncork();
    stream.cork();
  }

  /** A connection may get a new socket within a tick: each is uncorked by itself, whatever becomes of the other. */
  #beginTick(stream: Stream): void {
    const tick = { stream, corked: 0 };
    this.#tick = tick;
    nextTick(() => {
      if (this.#tick === tick) this.#tick = undefined;
      if (tick.corked > 0) stream.uncork();
    });
  }
}
