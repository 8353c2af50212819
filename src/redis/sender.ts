/** Sends scripts: EVALSHA, with EVAL where the server does not know the script yet. */
import { nextTick } from "../base/platform.js";
import { type EvalArguments, evalArguments, type ScriptCall, type ScriptText } from "../scripts/script.js";
import type { Connection, Stream } from "./connection.js";
import { isShebangRefused } from "./failures.js";

const COMMANDS_PER_WRITE = 16;

export class Sender {
  readonly #connection: Connection;
  #legacy: boolean;
  /** The socket that commands of this tick are written to. */
  #stream: Stream | undefined;
  /** How many commands of this tick were gathered after the first. */
  #gathered = 0;
  /** The scripts that this client has run. The first run of each is an EVAL, so that it costs one command. */
  readonly #known = new Set<ScriptText>();

  constructor(connection: Connection, legacy: boolean) {
    this.#connection = connection;
    this.#legacy = legacy;
  }

  /**
   * Sends one script once; rejects with the error of ioredis. `isAlone`: nothing else is on its way. `anew`: the server did not
   * know the script.
   * @throws synchronously, what {@link evalArguments} refuses
   */
  send(call: ScriptCall, isAlone: boolean, anew: boolean): Promise<unknown> {
    const { legacy, modern } = call.script;
    const form = this.#legacy ? legacy : modern;
    if (anew || !this.#known.has(form)) {
      return this.#teach(form, evalArguments(form.text, call), call);
    }
    const command = evalArguments(form.sha1, call);
    if (this.#stream || !isAlone) this.gather();
    return this.#connection.evalsha(...command);
  }

  /** Sends a script by its text, which teaches it to the server. */
  async #teach(form: ScriptText, command: EvalArguments, call: ScriptCall): Promise<unknown> {
    try {
      const reply = await this.#connection.eval(...command);
      this.#known.add(form);
      return reply;
    } catch (error) {
      // Decided by the form that was sent, not by `#legacy`: the form of another call may have been refused meanwhile.
      if (form === call.script.legacy || !isShebangRefused(error)) throw error;
      this.#legacy = true;
      return this.send(call, true, true);
    }
  }

  /**
   * Lets the commands of one tick travel in few writes, because a write for each costs more than all else here. They go in
   * groups, so that the server works while the rest is written. A command that is alone goes at once, unless somebody has
   * called this before it: then no other client's command comes between it and the others.
   */
  gather(): void {
    const { stream } = this.#connection;
    if (!stream) return;
    if (stream !== this.#stream) {
      // A connection may get a new socket within a tick.
      if (this.#stream) this.#flush();
      else nextTick(this.#flush);
      this.#stream = stream;
    } else {
      if (++this.#gathered % COMMANDS_PER_WRITE > 0) return;
      stream.uncork();
    }
    stream.cork();
  }

  readonly #flush = (): void => {
    this.#stream?.uncork();
    this.#stream = undefined;
    this.#gathered = 0;
  };
}
