/**
 * Subscribes to channels for their listeners, and decides on which connection each channel is subscribed.
 *
 * Standalone and Sentinel need one connection. So does a cluster with classic pub/sub (any master will do). With sharded
 * pub/sub each master that has channels needs one, and channels move with their slots. A message is only a hint to try
 * again: a message too many costs one try, and no message is trusted.
 */
import { outside } from "../base/outside.js";
import { microtask } from "../base/platform.js";
import { trace } from "../base/trace.js";
import type { CommandRunner } from "../redis/command-runner.js";
import {
  addressOf,
  type ClusterConnection,
  isCluster,
  masterOf,
  type ServerConnection,
  type SubscriberConnection,
} from "../redis/connection.js";
import { Subscriber } from "./subscriber.js";

const SETTLE_PAUSE = 100;

/** Told of every hint on its channel, or that the server forbids the channel. */
export interface Listener {
  hint(): void;
  refused(error: unknown): void;
  /** The channel could not be subscribed for now; the router tries again. */
  failed?(error: unknown): void;
  /** The router was closed: it calls the listener no more. */
  closed?(): void;
}

/** A standalone connection, or the only one needed in a cluster with classic pub/sub. */
const ANY_NODE = "";

export class Router {
  readonly runner: CommandRunner;
  readonly #listeners = new Map<string, Set<Listener>>();
  /** By node (`host:port`). */
  readonly #subscribers = new Map<string, Subscriber>();
  #cancelSettle: (() => void) | undefined;
  #closed = false;

  constructor(runner: CommandRunner) {
    this.runner = runner;
    const { connection } = runner;
    if (!isCluster(connection)) return;
    for (const change of ["refresh", "-node", "ready"]) connection.on(change, () => this.settleSoon());
  }

  /** Releases are announced by SPUBLISH. */
  get isSharded(): boolean {
    return this.runner.publishCommand === "SPUBLISH";
  }

  /** Listens to a channel until the returned function is called. The first hint comes with the server's confirmation. */
  subscribe(channel: string, listener: Listener): () => void {
    const known = this.#listeners.get(channel);
    if (known) {
      known.add(listener);
      this.#welcome(channel, listener);
    } else {
      this.#listeners.set(channel, new Set([listener]));
      outside(() => this.#subscribeAtHome(channel));
    }
    return () => this.#unsubscribe(channel, listener);
  }

  /** A listener that joins a confirmed channel has missed its earlier messages, so it gets one hint. */
  #welcome(channel: string, listener: Listener): void {
    if (![...this.#subscribers.values()].some((subscriber) => subscriber.listensTo(channel))) return;
    microtask(() => {
      if (this.#listeners.get(channel)?.has(listener)) listener.hint();
    });
  }

  close(): void {
    this.#closed = true;
    this.#cancelSettle?.();
    for (const subscriber of this.#subscribers.values()) subscriber.close();
    this.#subscribers.clear();
    for (const channel of this.#listeners.keys()) this.tell(channel, (listener) => listener.closed?.());
    this.#listeners.clear();
  }

  #unsubscribe(channel: string, listener: Listener): void {
    const listeners = this.#listeners.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    this.#listeners.delete(channel);
    for (const subscriber of this.#subscribers.values()) subscriber.remove(channel);
  }

  /** Subscribes the channel on the node where its messages arrive, and on no other. */
  #subscribeAtHome(channel: string): void {
    const home = this.#home(channel);
    for (const [node, subscriber] of this.#subscribers) {
      if (node !== home?.node) subscriber.remove(channel);
    }
    if (!home) return this.settleSoon();
    const { node, source } = home;
    const subscriber = this.#subscribers.get(node) ?? new Subscriber(source, this);
    this.#subscribers.set(node, subscriber);
    subscriber.add(channel);
  }

  /** A message came on this channel, or it was (re-)subscribed and messages may have been missed before. */
  hint(channel: string): void {
    this.tell(channel, (listener) => listener.hint());
  }

  tell(channel: string, what: (listener: Listener) => void): void {
    const listeners = this.#listeners.get(channel);
    if (listeners) for (const listener of [...listeners]) what(listener);
  }

  /** The node that a channel's messages arrive at; undefined while the cluster is not known. */
  #home(channel: string): { node: string; source: ServerConnection } | undefined {
    const { connection } = this.runner;
    if (!isCluster(connection)) return { node: ANY_NODE, source: connection as SubscriberConnection };
    const masters = new Map(connection.nodes("master").map((node) => [addressOf(node), node]));
    const node = this.isSharded ? masterOf(connection, channel) : this.#anyMaster(masters);
    const source = node === undefined ? undefined : masters.get(node);
    return node !== undefined && source ? { node, source } : undefined;
  }

  #anyMaster(masters: ReadonlyMap<string, unknown>): string | undefined {
    const used = [...this.#subscribers.keys()].find((node) => masters.has(node));
    return used ?? [...masters.keys()][Math.floor(Math.random() * masters.size)];
  }

  /** Moves each channel to its node, a little later: changes of the topology come in bursts. */
  settleSoon(): void {
    if (this.#closed || this.#cancelSettle) return;
    this.#cancelSettle = this.runner.clock.after(SETTLE_PAUSE, () => {
      this.#cancelSettle = undefined;
      outside(() => this.#settle());
    });
  }

  #settle(): void {
    const { connection } = this.runner;
    if (isCluster(connection)) this.#leaveGone(connection);
    for (const channel of this.#listeners.keys()) this.#subscribeAtHome(channel);
    // Those that failed for a passing reason.
    for (const subscriber of this.#subscribers.values()) subscriber.retry();
  }

  #leaveGone(cluster: ClusterConnection): void {
    const known = new Set(cluster.nodes("master").map(addressOf));
    for (const [node, subscriber] of this.#subscribers) {
      if (known.has(node)) continue;
      trace?.("a node left the cluster");
      subscriber.close();
      this.#subscribers.delete(node);
    }
  }
}
