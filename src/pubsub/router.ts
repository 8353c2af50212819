/**
 * Subscribes to channels for their listeners, and decides on which connection each channel is subscribed.
 *
 * Standalone and Sentinel need one connection. So does a cluster with classic pub/sub (any master will do). With sharded
 * pub/sub each master that has channels needs one, and channels move with their slots. A message is only a hint to try
 * again: a message too many costs one try, and no message is trusted.
 */
import { ClientClosedError } from "../base/errors.js";
import { outside } from "../base/outside.js";
import { microtask } from "../base/platform.js";
import type { CommandRunner } from "../redis/command-runner.js";
import {
  addressOf,
  isCluster,
  masterAddress,
  type ServerConnection,
  type SubscriberConnection,
} from "../redis/connection.js";
import { Subscriber } from "./subscriber.js";

const SETTLE_PAUSE = 100;

/** Told of every hint on its channel, or that none will come: the server forbids the channel, or the client is closed. */
export interface Listener {
  hint(): void;
  refused(error: unknown, channel: string): void;
}

export class Router {
  readonly runner: CommandRunner;
  readonly #listeners = new Map<string, Set<Listener>>();
  /** By the address of the server. */
  readonly #subscribers = new Map<string, Subscriber>();
  /** With classic pub/sub, all channels of a cluster are subscribed at the master of this one. */
  readonly #anyChannel = String(Math.random());
  #cancelSettle: (() => void) | undefined;

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
    this.#cancelSettle?.();
    for (const subscriber of this.#subscribers.values()) subscriber.close();
    this.#subscribers.clear();
    for (const channel of this.#listeners.keys()) this.refuse(channel, new ClientClosedError(""));
    this.#listeners.clear();
  }

  #unsubscribe(channel: string, listener: Listener): void {
    const listeners = this.#listeners.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    this.#listeners.delete(channel);
    for (const subscriber of this.#subscribers.values()) subscriber.remove(channel);
  }

  /** Subscribes the channel on the server where its messages arrive, and on no other. */
  #subscribeAtHome(channel: string): void {
    const home = masterAddress(this.runner.connection, this.isSharded ? channel : this.#anyChannel);
    for (const [address, subscriber] of this.#subscribers) {
      if (address !== home) subscriber.remove(channel);
    }
    const server = this.#servers().get(home);
    if (!server) return this.settleSoon();
    const subscriber = this.#subscribers.get(home) ?? new Subscriber(server, this);
    this.#subscribers.set(home, subscriber);
    subscriber.add(channel);
  }

  /** The servers that are known, by address as {@link masterAddress} has it. */
  #servers(): ReadonlyMap<string, ServerConnection> {
    const { connection } = this.runner;
    if (!isCluster(connection)) return new Map([["", connection as SubscriberConnection]]);
    return new Map(connection.nodes("master").map((node) => [addressOf(node), node]));
  }

  /** A message came on this channel, or it was (re-)subscribed and messages may have been missed before. */
  hint(channel: string): void {
    for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener.hint();
  }

  refuse(channel: string, error: unknown): void {
    for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener.refused(error, channel);
  }

  /** Moves each channel to its server, a little later: changes of the topology come in bursts. */
  settleSoon(): void {
    if (this.runner.isClosed || this.#cancelSettle) return;
    this.#cancelSettle = this.runner.clock.after(SETTLE_PAUSE, () => {
      this.#cancelSettle = undefined;
      outside(() => this.#settle());
    });
  }

  #settle(): void {
    const servers = this.#servers();
    for (const [address, subscriber] of this.#subscribers) {
      if (servers.has(address)) continue;
      subscriber.close();
      this.#subscribers.delete(address);
    }
    for (const channel of this.#listeners.keys()) this.#subscribeAtHome(channel);
    // Those that failed for a passing reason.
    for (const subscriber of this.#subscribers.values()) subscriber.retry();
  }
}
