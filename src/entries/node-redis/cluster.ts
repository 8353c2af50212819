/**
 * The connection of a cluster's client, as `createCluster` makes it. The client knows where the slots are. When a
 * master has gone, only version 6 finds its successor by itself; so here each lost node, and each call without an
 * answer, makes the client look again.
 */
import { errorMonitor } from "node:events";
import { microtask, setTimeout } from "../../base/platform.js";
import type { ClusterConnection, ConnectionOptions } from "../../redis/connection.js";
import { slotOf } from "../../redis/slots.js";
import { type ClusterClient, type ClusterNode, destroySettled, ignore, type PlainClient } from "./clients.js";
import { GivenConnection } from "./given-connection.js";
import { NodeSource, OwnCluster, type Topology, type Way } from "./own-cluster.js";

/** Milliseconds from one look for the slots to the next. */
const PAUSE = 200;

type Addresses = readonly (readonly string[] | undefined)[];

export class ClusterOfNodes extends GivenConnection implements ClusterConnection, Topology {
  readonly isCluster = true;
  readonly options: ConnectionOptions = {};
  protected readonly link: OwnCluster;
  readonly #cluster: ClusterClient;
  /** The array of slots that `#addresses` was made of. */
  #read: ClusterClient["slots"] | undefined;
  #addresses: Addresses = [];
  /** The library's further connections, beside the one that commands go over. */
  readonly #own = new Set<OwnCluster>();
  #isPaused = false;
  #mustLook = false;
  readonly #way: Way = {
    ask: (address, args) => this.#ask(address, args),
    refresh: () => this.refreshSlotsCache(),
  };
  #knowing: Promise<void> | undefined;

  constructor(cluster: ClusterClient) {
    super();
    this.#cluster = cluster;
    this.link = new OwnCluster(this, false);
    for (const event of ["-node", "node error", "ready"])
      this.link.on(event, (...args: unknown[]) => this.emit(event, ...args));
    cluster.on(errorMonitor, (error: unknown) => {
      this.noteError(error);
      if (this.knowledge !== "ready") this.emit("close");
      this.checkOpen();
    });
    cluster.on("connect", () => {
      this.opened();
      this.emit("ready");
    });
    cluster.on("disconnect", () => this.closed());
    cluster.on("node-error", () => this.#endLate());
    if (this.knowledge === "ready") this.opened();
  }

  /** "ready" when it is known where the slots are. */
  get knowledge(): string {
    return this.#cluster.isOpen && this.#cluster.masters.length > 0 ? "ready" : "connecting";
  }

  get slots(): Addresses {
    const { slots } = this.#cluster;
    if (slots !== this.#read) this.#readSlots(slots);
    return this.#addresses;
  }

  nodes(): readonly NodeSource[] {
    return this.#cluster.masters.map((node) => new NodeSource(this.#cluster, node, this.#way));
  }

  duplicate(): OwnCluster {
    const own = new OwnCluster(this, true);
    this.#own.add(own);
    own.on("connect", () => this.#own.add(own));
    return own;
  }

  addressOf(key: string): string {
    const address = this.slots[slotOf(key)]?.[0];
    if (address !== undefined) return address;
    throw new Error("no master of this slot is known");
  }

  /** Resolves when it is known where the slots are; rejects if an attempt to find out fails. Calls share one. */
  known(): Promise<void> {
    if (this.knowledge === "ready") return Promise.resolve();
    this.begin();
    this.#knowing ??= this.#learn().finally(() => {
      this.#knowing = undefined;
    });
    return this.#knowing;
  }

  /**
   * Makes the client look where the slots are, and ask the master of this address first. Calls within `PAUSE` after a
   * look share one more look at its end.
   */
  refreshSlotsCache(first?: string): void {
    if (this.knowledge !== "ready") return;
    if (this.#isPaused) {
      this.#mustLook = true;
      return;
    }
    this.#isPaused = true;
    setTimeout(() => {
      this.#isPaused = false;
      if (this.#mustLook) this.refreshSlotsCache();
    }, PAUSE).unref();
    this.#mustLook = false;
    const one = this.#whomToAsk(first);
    const looked = one && this.#cluster._slots?.rediscover?.(one);
    looked?.then(() => void this.slots, ignore).finally(() => this.#endLate());
  }

  protected get isOpen(): boolean {
    return this.#cluster.isOpen;
  }

  protected open(): Promise<unknown> {
    return this.#cluster.connect();
  }

  /** Ends the clients of a look that was under way as its user closed the cluster: node-redis makes them all the same. */
  #endLate(): void {
    if (this.#cluster.isOpen) return;
    for (const { client } of [...this.#cluster.masters, ...this.#cluster.replicas])
      if (client?.isOpen) destroySettled(client);
  }

  /** The master that is named, or one that is ready, or any. */
  #whomToAsk(first: string | undefined): PlainClient | undefined {
    const clients = this.#cluster.masters.flatMap(({ client }) => client ?? []);
    const ready = clients.filter(({ isReady }) => isReady);
    const from = ready.length > 0 ? ready : clients;
    const named = this.#cluster.masters.find(({ address }) => address === first)?.client;
    return named?.isReady ? named : from[Math.floor(Math.random() * from.length)];
  }

  /** Rejects, never throws: a master that has left, or a link that rests, is trouble of the connection. */
  async #ask(address: string, args: readonly string[]): Promise<unknown> {
    if (this.status === "wait") this.start();
    return this.link.linkTo(address).send(args);
  }

  #learn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.off("ready", settle).off("close", settle).off("end", settle);
        if (this.knowledge === "ready") resolve();
        else reject(new Error("no node of the cluster answers"));
      };
      this.on("ready", settle).on("close", settle).on("end", settle);
    });
  }

  #readSlots(slots: ClusterClient["slots"]): void {
    const lists = new Map<ClusterNode, string[]>();
    const listOf = (master: ClusterNode) => {
      const list = lists.get(master) ?? [master.address];
      lists.set(master, list);
      return list;
    };
    this.#read = slots;
    this.#addresses = Array.from(slots, (shard) => shard && listOf(shard.master));
    // Later, because the caller is in the middle of something.
    microtask(() => {
      this.link.dropOthers();
      for (const own of this.#own) {
        if (own.status === "end") this.#own.delete(own);
        else own.dropOthers();
      }
      this.emit("refresh");
    });
  }
}
