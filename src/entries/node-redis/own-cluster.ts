/** Connections of the library's own to the masters of a user's cluster. */
import type { ClusterConnection, ConnectionOptions, ServerConnection } from "../../redis/connection.js";
import { type ClusterClient, type ClusterNode, disconnected, type PlainClient } from "./clients.js";
import { CommandList } from "./command-list.js";
import { Emitter } from "./emitter.js";
import type { Link } from "./given-connection.js";
import { OwnConnection, type OwnOptions } from "./own-connection.js";

/** How a {@link NodeSource} sends to its master: it has no connection itself. */
export interface Way {
  /** Sends a command to the master of an address. */
  ask(address: string, args: readonly string[]): Promise<unknown>;
  /** Looks where the slots are. */
  refresh(): void;
}

/** A master of the cluster. Its duplicates have the options of the client that the cluster has for it. */
export class NodeSource implements ServerConnection {
  readonly options: ConnectionOptions;
  /** `host:port`. */
  readonly address: string;
  readonly #cluster: ClusterClient;
  readonly #node: ClusterNode;
  readonly #way: Way;

  constructor(cluster: ClusterClient, node: ClusterNode, way: Way) {
    this.#cluster = cluster;
    this.#node = node;
    this.#way = way;
    this.address = node.address;
    this.options = { host: node.host, port: node.port };
  }

  call(...args: string[]): Promise<unknown> {
    return this.#way.ask(this.address, args);
  }

  duplicate(options?: OwnOptions): OwnConnection {
    // A client that is on its way may never arrive, and one of a node that has left is closed, but it has all options.
    let known = this.#node.client;
    const own = new OwnConnection(async () => {
      known = this.#node.client ?? known ?? (await this.#makeClient());
      return known;
    }, options);
    // Perhaps no other call goes to that slot, so nothing else would notice that it has moved.
    own.on("misdirected", () => this.#way.refresh());
    return own;
  }

  /** Makes the cluster connect to the node. It would do so for one that has left, and never end that client. */
  #makeClient(): Promise<PlainClient> {
    if (this.#cluster.masters.includes(this.#node)) return this.#cluster.nodeClient(this.#node);
    throw new Error(`${this.address} has left the cluster`);
  }
}

/** What {@link OwnCluster} needs to know of the cluster. */
export interface Topology extends Pick<ClusterConnection, "slots"> {
  /** "ready" when it is known where the slots are. */
  readonly knowledge: string;
  nodes(): readonly NodeSource[];
  /** Resolves when it is known where the slots are. */
  known(): Promise<void>;
  /** The address of the master that serves a key. */
  addressOf(key: string): string;
  /** Looks where the slots are, with the master of this address first. */
  refreshSlotsCache(first?: string): void;
  /** Sends a command to any master, over the connections that commands go over. */
  call(...args: string[]): Promise<unknown>;
}

/** One connection to each master, made when it is needed. */
export class OwnCluster extends Emitter implements ClusterConnection, Link {
  readonly isCluster = true;
  readonly options: ConnectionOptions = {};
  readonly #topology: Topology;
  readonly #keepsAlive: boolean;
  readonly #links = new Map<string, OwnConnection>();
  #isEnded = false;
  /** The connection has been asked to connect. */
  #isStarted = false;

  constructor(topology: Topology, keepsAlive: boolean) {
    super();
    this.#topology = topology;
    this.#keepsAlive = keepsAlive;
  }

  get status(): string {
    if (this.#isEnded) return "end";
    if (!this.#isStarted) return "wait";
    const { knowledge } = this.#topology;
    const links = [...this.#links.values()];
    const isUp =
      links.length === 0 || links.some(({ status }) => status === "ready" || status === "connecting");
    return knowledge === "ready" && !isUp ? "reconnecting" : knowledge;
  }

  get pending(): number {
    return [...this.#links.values()].reduce((sum, { pending }) => sum + pending, 0);
  }

  get slots(): ClusterConnection["slots"] {
    return this.#topology.slots;
  }

  nodes(): readonly NodeSource[] {
    return this.#topology.nodes();
  }

  refreshSlotsCache(): void {
    this.#topology.refreshSlotsCache();
  }

  duplicate(): OwnCluster {
    return new OwnCluster(this.#topology, this.#keepsAlive);
  }

  evalsha(sha1: string, keys: number, ...rest: string[]): Promise<unknown> {
    return this.send(["EVALSHA", sha1, String(keys), ...rest], rest[0]);
  }

  eval(text: string, keys: number, ...rest: string[]): Promise<unknown> {
    return this.send(["EVAL", text, String(keys), ...rest], rest[0]);
  }

  call(...args: string[]): Promise<unknown> {
    return this.#topology.call(...args);
  }

  pipeline(): CommandList {
    return new CommandList(async (key) => {
      await this.#topology.known();
      return this.linkTo(this.#topology.addressOf(key)).ready();
    });
  }

  async connect(): Promise<void> {
    this.#isEnded = false;
    this.#isStarted = true;
    this.emit("connect");
    await this.#topology.known();
  }

  disconnect(): void {
    this.#isEnded = true;
    for (const link of this.#links.values()) link.disconnect();
    this.#links.clear();
  }

  /** Sends a command to the master of the key, or to any master; follows a redirection. */
  async send(args: readonly string[], key?: string): Promise<unknown> {
    if (this.#topology.knowledge !== "ready") await this.#topology.known();
    const address = key === undefined ? this.#anyAddress() : this.#topology.addressOf(key);
    return this.linkTo(address)
      .send(args)
      .catch((error: unknown) => this.#follow(error, args));
  }

  /** The connection to a master. */
  linkTo(address: string): OwnConnection {
    const known = this.#links.get(address);
    if (known) return known;
    if (this.#isEnded) throw disconnected();
    const source = this.#topology.nodes().find((node) => node.address === address);
    if (!source) throw new Error(`no master ${address} is known`);
    const link = source.duplicate();
    if (!this.#keepsAlive) link.stream.unref();
    link.on("error", (error: unknown) => this.emit("node error", error, address));
    link.on("close", () => {
      this.emit("-node");
      // The cluster may know the successor already. After a wanted end nobody needs one.
      if (link.status !== "end") this.#topology.refreshSlotsCache();
    });
    link.on("ready", () => this.emit("ready"));
    this.#links.set(address, link);
    return link;
  }

  /** Ends connections to nodes that have left. */
  dropOthers(): void {
    const present = new Set(this.#topology.nodes().map(({ address }) => address));
    for (const [address, link] of this.#links) {
      if (present.has(address)) continue;
      this.#links.delete(address);
      link.disconnect();
    }
  }

  #anyAddress(): string {
    const addresses = this.#topology.nodes().map(({ address }) => address);
    const up = addresses.filter((address) => this.#links.get(address)?.status === "ready");
    const some = up.length > 0 ? up : addresses;
    return some[Math.floor(Math.random() * some.length)] ?? "";
  }

  /** Sends a command again to the master that the server names: its slot has moved, or is on the move. */
  #follow(error: unknown, args: readonly string[]): Promise<unknown> {
    const [, code, address = ""] =
      error instanceof Error ? (/^(MOVED|ASK) \d+ (\S+)/.exec(error.message) ?? []) : [];
    if (code === undefined) throw error;
    if (code === "MOVED") this.#topology.refreshSlotsCache(address);
    const isKnown = this.#topology.nodes().some((node) => node.address === address);
    // The runner sends the call again, when more is known.
    if (!isKnown) throw error;
    const link = this.linkTo(address);
    if (code === "ASK") link.send(["ASKING"]).catch(() => {});
    return link.send(args);
  }
}
