/** Asks one server about itself. */
import type { Server } from "../server.js";

export class Facts {
  readonly #server: Server;
  #info: Promise<ReadonlyMap<string, string>> | undefined;

  constructor(server: Server) {
    this.#server = server;
  }

  /** `host:port`. */
  get address(): string {
    const { host, port } = this.#server.options;
    return `${host}:${port}`;
  }

  /** A field of INFO; undefined if there is none. */
  async info(field: string): Promise<string | undefined> {
    this.#info ??= this.#server.call("INFO").then((text) => {
      const lines = String(text)
        .split(/\r?\n/)
        .filter((line) => line.includes(":"));
      return new Map(
        lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
      );
    });
    return (await this.#info).get(field);
  }

  /** A number of INFO; 0 if there is none. */
  async count(field: string): Promise<number> {
    return Number((await this.info(field)) ?? 0);
  }

  /** A setting; undefined if CONFIG is not allowed, as in most managed services. */
  async setting(name: string): Promise<string | undefined> {
    const reply = await this.#server.call("CONFIG", "GET", name).catch(() => undefined);
    const [, value] = Array.isArray(reply) ? (reply as string[]) : Object.entries(reply ?? {}).flat();
    return value as string | undefined;
  }
}
