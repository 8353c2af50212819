/** The connection of a client of one server, as `createClient` makes it. */
import { errorMonitor } from "node:events";
import type { ConnectionOptions } from "../../redis/connection.js";
import type { PlainClient } from "./clients.js";
import { GivenConnection } from "./given-connection.js";
import { OwnConnection, type OwnOptions } from "./own-connection.js";

export class StandaloneConnection extends GivenConnection {
  protected readonly link: OwnConnection;
  readonly #client: PlainClient;
  #firstError: (() => void) | undefined;

  constructor(client: PlainClient) {
    super();
    this.#client = client;
    this.link = new OwnConnection(async () => {
      await this.opening;
      return client;
    });
    this.link.stream.unref();
    this.link.on("error", (error: unknown) => this.noteError(error));
    this.link.on("close", () => this.emit("close"));
    this.link.on("ready", () => this.emit("ready"));
    client.on("ready", () => this.opened());
    client.on("end", () => this.closed());
    client.on(errorMonitor, () => {
      this.#firstError?.();
      this.checkOpen();
    });
    if (client.isReady || (client.socketEpoch ?? 0) > 0) {
      this.opened();
      this.checkOpen();
    }
  }

  get options(): ConnectionOptions {
    const { host = "localhost", port = 6379, path } = this.#client.options?.socket ?? {};
    return path === undefined ? { host, port } : { path };
  }

  duplicate(options?: OwnOptions): OwnConnection {
    return this.link.duplicate(options);
  }

  protected get isOpen(): boolean {
    return this.#client.isOpen;
  }

  /** Settles at the first failure, because node-redis goes on trying for ever. */
  protected open(): Promise<unknown> {
    const failed = new Promise<void>((resolve) => {
      this.#firstError = resolve;
    });
    return Promise.race([this.#client.connect(), failed]);
  }
}
