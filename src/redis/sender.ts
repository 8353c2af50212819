/** Sends scripts: EVALSHA, with EVAL where the server does not know the script yet. */
import { nextTick } from "../base/platform.js";
import { type AnyScript, evalArguments, type ScriptCall } from "../scripts/script.js";
import type { Connection, Stream } from "./connection.js";

const COMMANDS_PER_WRITE = 16;

export class Sender {
  readonly #connection: Connection;
  /** The socket that commands of this tick are written to. */
  #stream: Stream | undefined;
  /** How many commands of this tick were gathered after the first. */
  #gathered = 0;
  /** The scripts that this client has run. The first run of each is an EVAL, so that it costs one command. */
  readonly #known = new Set<AnyScript>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Sends one script once; rejects with the error of ioredis. `isAlone`: nothing else is on its way. `anew`: the server did not
   * know the script.
   * @throws synchronously, what {@link evalArguments} refuses
   */
  send(call: ScriptCall, isAlone: boolean, anew: boolean): Promise<unknown> {
    const { script } = call;
    if (anew || !this.#known.has(script)) {
      const learnt = (reply: unknown) => {
        this.#known.add(script);
        return reply;
      };
      return this.#connection.eval(...evalArguments(script.text, call)).then(learnt);
    }
    const command = evalArguments(script.sha1, call);
    if (this.#stream || !isAlone) this.gather();
    return this.#connection.evalsha(...command);
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
