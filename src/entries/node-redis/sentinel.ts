/**
 * The connection of a client of sentinels, as `createSentinel` makes it. That client has clients of the master, and
 * makes new ones when the master changes: they show where the master is, and the library's own connections go there.
 * The user may have leased all of them, by `use` or `acquire`, for as long as they like. Then the client says where the
 * master is, and the options are those of a client that was seen before.
 */
import { errorMonitor } from "node:events";
import type { ConnectionOptions } from "../../redis/connection.js";
import { ignore, type PlainClient, type SentinelClient, type Template } from "./clients.js";
import { GivenConnection, type Link } from "./given-connection.js";
import { OwnConnection, type OwnOptions } from "./own-connection.js";

export class SentinelConnection extends GivenConnection {
  readonly options: ConnectionOptions = { sentinels: [] };
  protected readonly link: Link;
  readonly #sentinel: SentinelClient;
  /** The client of the master, as long as its server is the master. */
  #master: PlainClient | undefined;
  /** The last client of a master that was seen. */
  #seen: PlainClient | undefined;
  readonly #heard = new WeakSet<PlainClient>();
  /** Connections of the library to the master. */
  readonly #own = new Set<OwnConnection>();
  #finding: Promise<void> | undefined;

  constructor(sentinel: SentinelClient) {
    super();
    this.#sentinel = sentinel;
    const link = this.duplicate();
    link.stream.unref();
    link.on("error", (error: unknown) => this.noteError(error));
    link.on("close", () => this.emit("close"));
    link.on("ready", () => this.emit("ready"));
    this.link = {
      get status() {
        return link.status;
      },
      get pending() {
        return link.pending;
      },
      send: (args) => link.send(args).catch((error: unknown) => this.#failed(error)),
      pipeline: () => link.pipeline(),
      connect: () => link.connect(),
      disconnect: () => link.disconnect(),
    };
    sentinel.on(errorMonitor, (error: unknown) => {
      this.noteError(error);
      this.checkOpen();
    });
    sentinel.on("end", () => this.checkOpen());
    // Version 5 has neither event: the next call finds out.
    sentinel.on("ready", () => this.opened());
    sentinel.on("topology-change", ({ type }: { type: string }) => {
      if (type === "MASTER_CHANGE") this.#changed();
    });
    if (sentinel.isReady) {
      this.opened();
      // Now, since the user may have leased all clients at the first call.
      this.#find().catch(ignore);
    }
  }

  duplicate(options?: OwnOptions): OwnConnection {
    const own = new OwnConnection(() => this.#present(), options);
    this.#own.add(own);
    own.on("end", () => this.#own.delete(own));
    own.on("connect", () => this.#own.add(own));
    return own;
  }

  protected get isOpen(): boolean {
    return this.#sentinel.isOpen;
  }

  protected open(): Promise<unknown> {
    return this.#sentinel.connect();
  }

  /**
   * The client of the master, or what has its address and the options of an earlier one. A client that has lost its
   * socket stays the answer until there is another.
   */
  async #present(): Promise<Template> {
    // Version 5 has no event for its end: this finds out.
    this.begin();
    await this.opening;
    if (!this.#sentinel.isOpen) throw new Error("the client of the sentinels is not connected");
    if (this.#master?.isOpen) return this.#master;
    const found = this.#find();
    const seen = this.#seen;
    if (seen) found.catch(ignore);
    else await found;
    if (this.#master) return this.#master;
    const node = this.#sentinel.getMasterNode();
    if (!seen || !node) throw new Error("no master is known");
    return {
      options: { socket: { ...seen.options?.socket, ...node } },
      duplicate: (overrides) => seen.duplicate(overrides),
    };
  }

  /**
   * Asks for the client of the master, and waits until that is connected. `doubted`: a client that may be no master's
   * any more, so the sentinels are asked.
   */
  #find(doubted?: PlainClient): Promise<void> {
    let doubt = doubted;
    this.#finding ??= this.#sentinel
      ._execute(false, async (found) => {
        if (found !== doubt) return this.#use(found);
        doubt = undefined;
        // This error makes the client ask the sentinels.
        throw new Error("READONLY");
      })
      .finally(() => {
        this.#finding = undefined;
      });
    return this.#finding;
  }

  #use(master: PlainClient): void {
    if (master === this.#master) return;
    const isOther = this.#master !== undefined;
    this.#master = master;
    this.#seen = master;
    this.opened();
    if (!this.#heard.has(master)) {
      this.#heard.add(master);
      master.on("end", () => this.#replaced(master));
    }
    if (isOther) this.#reconnect();
  }

  /** The master's client was closed: there is another master, or the user has closed the client. */
  #replaced(master: PlainClient): void {
    if (master !== this.#master) return;
    this.#master = undefined;
    this.#reconnect();
  }

  /** The client has found a master: its first one, or another. */
  #changed(): void {
    this.#master = undefined;
    if (this.#seen) this.#reconnect();
    this.#find().catch(ignore);
  }

  #reconnect(): void {
    for (const own of [...this.#own]) if (own.status !== "wait" && own.status !== "end") own.disconnect(true);
  }

  #failed(error: unknown): never {
    // The server is a replica by now.
    if (error instanceof Error && error.message.startsWith("READONLY"))
      this.#find(this.#master).catch(ignore);
    throw error;
  }
}
