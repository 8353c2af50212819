/** Commands that go to one server one behind the other, on one connection: what the core calls a pipeline. */
import type { EvalArguments, Pipeline } from "../../redis/connection.js";
import { named, PLAINLY, type PlainClient } from "./clients.js";

export class CommandList implements Pipeline {
  readonly #clientOf: (firstKey: string) => Promise<PlainClient>;
  readonly #commands: string[][] = [];
  #firstKey = "";

  /** `clientOf`: the connection to the server of a key. */
  constructor(clientOf: (firstKey: string) => Promise<PlainClient>) {
    this.#clientOf = clientOf;
  }

  eval(...args: EvalArguments): this {
    return this.#add(["EVAL", ...args.flat().map(String)], args[2][0]);
  }

  wait(replicas: number, timeout: number): this {
    return this.#add(["WAIT", String(replicas), String(timeout)]);
  }

  async exec(): Promise<[Error | null, unknown][]> {
    const client = await this.#clientOf(this.#firstKey);
    const sent = this.#commands.map((args) => client.sendCommand(args, PLAINLY));
    const settled = await Promise.allSettled(sent);
    return settled.map((result) =>
      result.status === "fulfilled" ? [null, result.value] : [named(result.reason), undefined],
    );
  }

  #add(args: string[], key?: string): this {
    this.#commands.push(args);
    this.#firstKey ||= key ?? "";
    return this;
  }
}
