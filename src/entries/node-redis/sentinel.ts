/**
 * Says where the master is that sentinels watch. A client that `createSentinel` makes has clients of the master, and makes
 * new ones when the master changes. They show where the master is, and the library's own connections go there. The user may
 * have leased all of them, by `use` or `acquire`, for as long as they like, or have closed them. Then the client says where
 * the master is, or the last one counts still. The options are those of a client that was seen before.
 */
import type { ConnectionOptions } from "../../redis/connection.js";
import {
  connectOnce,
  ignore,
  type PlainClient,
  type SentinelClient,
  type Source,
  type Template,
} from "./clients.js";

export class MasterOfSentinel implements Source {
  readonly options: ConnectionOptions = { sentinels: [] };
  readonly onMove: Set<() => void> = new Set();
  readonly #sentinel: SentinelClient;
  /** The client of the master, as long as its server is the master. */
  #master: PlainClient | undefined;
  /** The last client of a master that was seen. */
  #seen: PlainClient | undefined;
  readonly #heard = new WeakSet<PlainClient>();
  #finding: Promise<void> | undefined;

  constructor(sentinel: SentinelClient) {
    this.#sentinel = sentinel;
    sentinel.on("topology-change", ({ type }: { type: string }) => {
      if (type === "MASTER_CHANGE") this.#changed();
    });
    // Now, since the user may have leased all clients at the first call.
    if (sentinel.isReady) this.#find().catch(ignore);
  }

  /**
   * The client of the master, or what has its address and the options of an earlier one. A client that has lost its
   * socket stays the answer until there is another.
   */
  async template(): Promise<Template> {
    await connectOnce(this.#sentinel);
    if (this.#master?.isOpen) return this.#master;
    const seen = this.#seen;
    if (this.#sentinel.isOpen) {
      const found = this.#find();
      if (seen) found.catch(ignore);
      else await found;
      if (this.#master) return this.#master;
    }
    if (!seen) throw new Error("no master is known");
    return {
      options: { socket: { ...seen.options?.socket, ...this.#sentinel.getMasterNode() } },
      duplicate: (overrides) => seen.duplicate(overrides),
    };
  }

  doubt(): void {
    if (this.#sentinel.isOpen) this.#find(this.#master).catch(ignore);
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
    if (!this.#heard.has(master)) {
      this.#heard.add(master);
      master.on("end", () => this.#ended(master));
    }
    if (isOther) this.#moved();
  }

  /** The master's client was closed: there is another master, or the user has closed the client of the sentinels. */
  #ended(master: PlainClient): void {
    if (master !== this.#master || !this.#sentinel.isOpen) return;
    this.#master = undefined;
    this.#moved();
  }

  /** The client has found a master: its first one, or another. */
  #changed(): void {
    this.#master = undefined;
    if (this.#seen) this.#moved();
    this.#find().catch(ignore);
  }

  #moved(): void {
    for (const callback of [...this.onMove]) callback();
  }
}
