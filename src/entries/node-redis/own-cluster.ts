/**
 * A cluster as the core sees it. A client like the user's, which only the library has, knows where the slots are.
 * Commands go over a connection to each master, made when it is needed.
 *
 * When a master has gone, only version 6 of node-redis finds its successor by itself. So here each lost node, and each
 * call without an answer, makes the client look again.
 */
import { microtask, setTimeout } from "../../base/platform.js";
import type {
  ClusterConnection,
  ConnectionOptions,
  EvalArguments,
  ServerConnection,
  Stream,
} from "../../redis/connection.js";
import { slotOf } from "../../redis/slots.js";
import {
  type ClusterClient,
  type ClusterNode,
  connectOnce,
  destroySettled,
  disconnected,
  ignore,
  type PlainClient,
  type Source,
  type Template,
} from "./clients.js";
import { CommandList } from "./command-list.js";
import { Emitter } from "./emitter.js";
import { OwnConnection, type OwnOptions } from "./own-connection.js";

/** Milliseconds from one look for the slots to the next. */
const PAUSE = 200;

/** Commands that name no key: any server can answer them. */
const KEYLESS = new Set(["INFO", "PING", "PUBLISH", "PUBSUB", "SCAN"]);
const SCRIPTS = new Set(["EVAL", "EVALSHA"]);

/** The key, or sharded channel, that says which server a command is for. */
function keyOf(args: readonly string[]): string | undefined {
  const name = args[0]?.toUpperCase() ?? "";
  if (KEYLESS.has(name)) return undefined;
  return SCRIPTS.has(name) ? args[3] : args[1];
}

/** Options with the names that ioredis gives them. */
interface ClusterOptions {
  /** Milliseconds before the n-th attempt; null ends the connection. */
  readonly clusterRetryStrategy?: (times: number) => number | null;
}

/** A master. Its duplicates have the options of the client that the cluster's client has for it. */
class Master implements ServerConnection, Source {
  readonly options: ConnectionOptions;
  /** `host:port`. */
  readonly address: string;
  readonly #node: ClusterNode;
  readonly #cluster: OwnCluster;
  /** The last client of the node: one of a node that has left is closed, but it has all options. */
  #known: PlainClient | undefined;

  constructor(cluster: OwnCluster, node: ClusterNode) {
    this.#cluster = cluster;
    this.#node = node;
    this.address = node.address;
    this.options = { host: node.host, port: node.port };
  }

  /** The socket by which commands go there. */
  get stream(): Stream | undefined {
    return this.#cluster.knownLink(this.address)?.stream;
  }

  async template(): Promise<Template> {
    this.#known = this.#node.client ?? this.#known;
    if (!this.#known) throw new Error(`${this.address} has left the cluster`);
    return this.#known;
  }

  /** Rejects, never throws: a master that has left is trouble of the connection. */
  async call(...args: string[]): Promise<unknown> {
    return this.#cluster.linkTo(this.address).send(args);
  }

  duplicate(options?: OwnOptions): OwnConnection {
    const own = new OwnConnection(this, options);
    // Perhaps no other call goes to that slot, so nothing else would notice that it has moved.
    own.on("misdirected", () => this.#cluster.refreshSlotsCache());
    return own;
  }
}

export class OwnCluster extends Emitter implements ClusterConnection {
  readonly isCluster = true;
  readonly options: ConnectionOptions = {};
  status = "wait";
  readonly #given: ClusterClient;
  readonly #retryStrategy: (times: number) => number | null;
  /** Knows where the slots are, while the connection is there. */
  #client: ClusterClient | undefined;
  /** The array of slots that was read last. */
  #read: ClusterClient["slots"] | undefined;
  #addresses: ClusterConnection["slots"] = [];
  readonly #links = new Map<string, OwnConnection>();
  /** Attempts to find the cluster since it was known last. */
  #attempts = 0;
  #known: Promise<void> | undefined;
  #isPaused = false;
  #mustLook = false;

  constructor(given: ClusterClient, { clusterRetryStrategy }: ClusterOptions = {}) {
    super();
    this.#given = given;
    this.#retryStrategy = clusterRetryStrategy ?? (() => PAUSE);
  }

  get slots(): ClusterConnection["slots"] {
    const slots = this.#client?.slots;
    if (slots && slots !== this.#read) this.#readSlots(slots);
    return this.#addresses;
  }

  nodes(): readonly Master[] {
    return this.#client?.masters.map((node) => new Master(this, node)) ?? [];
  }

  duplicate(_nodes?: readonly object[], options?: ClusterOptions): OwnCluster {
    return new OwnCluster(this.#given, options);
  }

  evalsha(...args: EvalArguments): Promise<unknown> {
    return this.#send(["EVALSHA", ...args.flat().map(String)], args[2][0]);
  }

  eval(...args: EvalArguments): Promise<unknown> {
    return this.#send(["EVAL", ...args.flat().map(String)], args[2][0]);
  }

  call(...args: string[]): Promise<unknown> {
    return this.#send(args, keyOf(args));
  }

  pipeline(): CommandList {
    return new CommandList(async (key) => {
      await this.connect();
      return this.linkTo(this.#addressOf(key)).ready();
    });
  }

  /** Resolves when it is known where the slots are; rejects if an attempt to find out fails. Calls share one. */
  connect(): Promise<void> {
    if (this.status === "ready") return Promise.resolve();
    this.#known ??= this.#find().finally(() => {
      this.#known = undefined;
    });
    return this.#known;
  }

  /** Ends the connection; with `reconnect` it is made anew. */
  disconnect(reconnect = false): void {
    const client = this.#client;
    this.#client = undefined;
    for (const link of this.#links.values()) link.disconnect();
    this.#links.clear();
    if (client?.isOpen) endClient(client);
    this.#lost(reconnect);
  }

  /**
   * Makes the client look where the slots are, and ask the master of this address first. Calls within `PAUSE` after a
   * look share one more look at its end.
   */
  refreshSlotsCache(first?: string): void {
    const client = this.#client;
    if (!client) return;
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
    const one = whomToAsk(client, first);
    const looked = one && client._slots?.rediscover?.(one);
    looked
      ?.then(() => void this.slots, ignore)
      .finally(() => {
        // node-redis makes clients also when it has been closed meanwhile.
        if (client !== this.#client) endClient(client);
      });
  }

  knownLink(address: string): OwnConnection | undefined {
    return this.#links.get(address);
  }

  /** The connection to a master. */
  linkTo(address: string): OwnConnection {
    const known = this.#links.get(address);
    if (known) return known;
    if (this.status === "end") throw disconnected();
    const master = this.nodes().find((node) => node.address === address);
    if (!master) throw new Error(`no master ${address} is known`);
    const link = master.duplicate({ retryStrategy: this.#retryStrategy });
    this.#links.set(address, link);
    this.emit("+node", link);
    link.on("error", (error: unknown) => this.emit("node error", error, address));
    link.on("close", () => {
      this.emit("-node", undefined);
      // The client may know the successor already. After a wanted end nobody needs one.
      if (link.status !== "end") this.refreshSlotsCache();
    });
    link.on("ready", () => this.emit("ready"));
    link.on("end", () => this.#drop(address, link));
    return link;
  }

  async #find(): Promise<void> {
    this.status = this.#attempts++ === 0 ? "connecting" : "reconnecting";
    connectOnce(this.#given).catch(ignore);
    const client = this.#given.duplicate({ minimizeConnections: false });
    this.#client = client;
    client.on("error", (error: unknown) => {
      if (client === this.#client) this.emit("error", error);
    });
    client.on("node-error", () => {
      if (client !== this.#client) endClient(client);
    });
    try {
      await client.connect();
      if (client.masters.length === 0) throw new Error("no node of the cluster answers");
    } catch (error) {
      if (client.isOpen) endClient(client);
      if (client !== this.#client) throw disconnected();
      this.#client = undefined;
      this.#lost(true);
      throw error;
    }
    if (client !== this.#client) {
      endClient(client);
      throw disconnected();
    }
    this.#attempts = 0;
    this.status = "ready";
    void this.slots;
    this.emit("connect");
    this.emit("ready");
  }

  #lost(reconnect: boolean): void {
    const pause = reconnect ? this.#retryStrategy(this.#attempts + 1) : null;
    this.status = pause === null ? "end" : "reconnecting";
    this.emit("close");
    if (pause === null) {
      this.#attempts = 0;
      this.emit("end");
    } else
      setTimeout(() => {
        if (this.status === "reconnecting") this.connect().catch(ignore);
      }, pause);
  }

  /** Sends a command to the master of the key, or to any master; follows a redirection. */
  async #send(args: readonly string[], key: string | undefined): Promise<unknown> {
    if (this.status === "end") throw disconnected();
    if (this.status !== "ready") await this.connect();
    const address = key === undefined ? this.#anyAddress() : this.#addressOf(key);
    return this.linkTo(address)
      .send(args)
      .catch((error: unknown) => this.#follow(error, args));
  }

  #addressOf(key: string): string {
    const address = this.slots[slotOf(key)]?.[0];
    if (address !== undefined) return address;
    throw new Error("no master of this slot is known");
  }

  #anyAddress(): string {
    const addresses = this.nodes().map(({ address }) => address);
    const up = addresses.filter((address) => this.#links.get(address)?.status === "ready");
    const some = up.length > 0 ? up : addresses;
    return some[Math.floor(Math.random() * some.length)] ?? "";
  }

  /** Sends a command again to the master that the server names: its slot has moved, or is on the move. */
  #follow(error: unknown, args: readonly string[]): Promise<unknown> {
    const [, code, address = ""] =
      error instanceof Error ? (/^(MOVED|ASK) \d+ (\S+)/.exec(error.message) ?? []) : [];
    if (code === undefined) throw error;
    if (code === "MOVED") this.refreshSlotsCache(address);
    const isKnown = this.nodes().some((node) => node.address === address);
    // The runner sends the call again, when more is known.
    if (!isKnown) throw error;
    const link = this.linkTo(address);
    if (code === "ASK") link.send(["ASKING"]).catch(ignore);
    return link.send(args);
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
    // Nothing goes over these, so they keep no process alive.
    for (const { client } of this.#client?.masters ?? []) client?.unref();
    // Later, because the caller is in the middle of something.
    microtask(() => {
      this.#dropOthers();
      this.emit("refresh");
    });
  }

  /** Ends connections to nodes that have left. */
  #dropOthers(): void {
    const present = new Set(this.nodes().map(({ address }) => address));
    for (const [address, link] of this.#links) if (!present.has(address)) link.disconnect();
  }

  /** A connection has ended: its node has left, or nobody needs it. */
  #drop(address: string, link: OwnConnection): void {
    if (this.#links.get(address) !== link) return;
    this.#links.delete(address);
    this.emit("-node", link);
    if (this.#links.size === 0 && this.#retryStrategy(1) === null) this.disconnect();
  }
}

/** The master that is named, or one that is ready, or any. */
function whomToAsk({ masters }: ClusterClient, first: string | undefined): PlainClient | undefined {
  const clients = masters.flatMap(({ client }) => client ?? []);
  const ready = clients.filter(({ isReady }) => isReady);
  const from = ready.length > 0 ? ready : clients;
  const named = masters.find(({ address }) => address === first)?.client;
  return named?.isReady ? named : from[Math.floor(Math.random() * from.length)];
}

/** Ends the client of a cluster, and those that a look which is under way may make. */
function endClient(client: ClusterClient): void {
  if (client.isOpen) client.destroy();
  for (const { client: node } of [...client.masters, ...client.replicas])
    if (node?.isOpen) destroySettled(node);
}
