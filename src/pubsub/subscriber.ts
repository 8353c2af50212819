/**
 * One connection that subscribes, and the channels on it.
 *
 * ioredis does not report when it has subscribed again, and after 20 s of silently dropped packets its connection is
 * still `ready`. So this class subscribes again by itself after every reconnect, and gives a hint when the server has
 * confirmed that. A heartbeat finds dead connections.
 */
import { noop } from "../base/work.js";
import { reset, type ServerConnection, type SubscriberConnection } from "../redis/connection.js";
import { lacksCommand, scrubbed } from "../redis/failures.js";
import { ownServer } from "../redis/own-connection.js";
import type { Router } from "./router.js";

const HEARTBEAT = 5_000;

/** This file, not ioredis, decides when it subscribes again. */
const OPTIONS = { lazyConnect: false, autoResendUnfulfilledCommands: false };

export class Subscriber {
  readonly #connection: SubscriberConnection;
  readonly #router: Router;
  readonly #sharded: boolean;
  /** Channel → whether the server has confirmed it on the present connection. */
  readonly #channels = new Map<string, boolean>();
  #stopHeartbeat: (() => void) | undefined;

  constructor(source: ServerConnection, router: Router) {
    this.#router = router;
    this.#sharded = router.isSharded;
    this.#connection = ownServer(source, router.runner.alive, OPTIONS);
    this.#connection.on(this.#sharded ? "smessage" : "message", (channel: string) => router.hint(channel));
    this.#connection.on("close", () => this.#lost());
    this.#connection.on("moved", () => this.#moved());
    this.#connection.on("ready", () => this.retry());
  }

  /** Whether the server has confirmed the channel on the present connection. */
  listensTo(channel: string): boolean {
    return this.#channels.get(channel) === true;
  }

  add(channel: string): void {
    if (this.#channels.has(channel)) return;
    this.#channels.set(channel, false);
    this.#router.runner.alive.need();
    if (this.#connection.status === "ready") this.#subscribe(channel);
    if (!this.#stopHeartbeat) this.#heartbeat();
  }

  remove(channel: string): void {
    if (!this.#forget(channel) || this.#connection.status !== "ready") return;
    const command = this.#sharded ? "sunsubscribe" : "unsubscribe";
    this.#connection[command](channel).catch(noop); // the subscription is lost with the connection
  }

  /** Subscribes the channels that are not confirmed, if the connection is up. */
  retry(): void {
    if (this.#connection.status !== "ready") return;
    for (const [channel, confirmed] of this.#channels) if (!confirmed) this.#subscribe(channel);
  }

  close(): void {
    for (const channel of this.#channels.keys()) this.#forget(channel);
    this.#stopHeartbeat?.();
    this.#router.runner.alive.end(this.#connection);
  }

  #forget(channel: string): boolean {
    const isKnown = this.#channels.delete(channel);
    if (isKnown) this.#router.runner.alive.release();
    return isKnown;
  }

  #subscribe(channel: string): void {
    const command = this.#sharded ? "ssubscribe" : "subscribe";
    this.#connection[command](channel).then(
      () => {
        if (!this.#channels.has(channel)) return;
        this.#channels.set(channel, true);
        // No waiter here heard of a release between its last try and this moment, so it must try once more.
        this.#router.hint(channel);
      },
      (error: unknown) => this.#failed(channel, error),
    );
  }

  #failed(channel: string, error: unknown): void {
    if (!this.#channels.has(channel)) return;
    if (lacksCommand(error)) {
      this.#forget(channel);
      this.#router.refuse(channel, error);
      return;
    }
    const { servers } = this.#router.runner;
    servers.note(scrubbed(error), servers.of(channel));
    // MOVED, or the connection was lost: the router decides which node the channel belongs to now.
    this.#router.settleSoon();
  }

  #lost(): void {
    for (const channel of this.#channels.keys()) this.#channels.set(channel, false);
    this.#router.settleSoon();
  }

  /**
   * The server dropped a sharded channel because its slot has moved, and ioredis does not say which channel. So each
   * channel gets a hint: the waiter's next try is answered by MOVED, and then ioredis reads the slots anew.
   */
  #moved(): void {
    this.#lost();
    for (const channel of this.#channels.keys()) this.#router.hint(channel);
  }

  /**
   * Sends a PING. Without an answer until the next beat, the connection is closed and made anew. So is a connection whose
   * server has accepted it, and has not answered the handshake until then: ioredis would wait for TCP to give up. The
   * first PING goes with the first channel, and its answer is looked for even if no channel is left: waits may be short.
   */
  #heartbeat(): void {
    const { status, stream } = this.#connection;
    let alive = status !== "ready" && status !== "connect";
    if (status === "ready") {
      const answered = () => {
        alive = true;
      };
      this.#connection.ping().then(answered, noop); // a refused or aborted PING is no sign of life
    }
    this.#stopHeartbeat = this.#router.runner.clock.after(HEARTBEAT, () => {
      const isTheSame = this.#connection.stream === stream && this.#connection.status === status;
      if (!alive && isTheSame) reset(this.#connection);
      this.#stopHeartbeat = undefined;
      if (this.#channels.size > 0) this.#heartbeat();
    });
  }
}
