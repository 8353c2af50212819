/**
 * A connection to a server in memory: what this library uses of ioredis, and no more. Like ioredis it keeps commands
 * while it is down, and sends those again that were not answered when it was lost.
 */
import { EventEmitter } from "node:events";
import type { Link, Wire } from "./link.js";
import type { Subscriber } from "./memory-server.js";
import { fromBytes, type Reply, ReplyError, toBytes, toUser } from "./reply.js";

interface Options {
  readonly host: string;
  readonly port: number;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly lazyConnect?: boolean;
}

/** A command on its way. */
interface Request {
  readonly command: readonly string[];
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Argument = string | number;
type Kind = "publish" | "spublish";

export class MemoryConnection extends EventEmitter {
  status: "connecting" | "ready" | "reconnecting" | "end" = "connecting";
  readonly options: Options;
  readonly #link: Link;
  #wire: Wire;
  /** Commands that were not sent yet. */
  #queue: Request[] = [];
  /** Commands that were sent and not answered. */
  readonly #unanswered = new Set<Request>();
  readonly #subscriptions = new Map<
    string,
    { readonly kind: Kind; readonly channel: string; hear: Subscriber }
  >();

  /** `isConnected`: the connection is ready at once. */
  constructor(link: Link, options: Partial<Options> = {}, isConnected = false) {
    super();
    this.#link = link;
    this.#wire = link.wire(this);
    this.options = { host: "memory", port: link.server.port, ...options };
    link.connections.add(this);
    if (isConnected) this.status = "ready";
    else this.open();
  }

  /** With `lazyConnect` it is ready at once, as if the connection were there when it is needed first. */
  duplicate(overrides: Partial<Options> = {}): MemoryConnection {
    const isThere = this.#link.isUp && overrides.lazyConnect;
    return new MemoryConnection(this.#link, { ...this.options, ...overrides }, isThere);
  }

  call(...command: Argument[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.status === "end") return reject(new Error("Connection is closed."));
      const request = { command: command.flat().map((word) => toBytes(String(word))), resolve, reject };
      if (this.status === "ready") this.#send(request);
      else this.#queue.push(request);
    });
  }

  eval(...args: Argument[]): Promise<unknown> {
    return this.call("EVAL", ...args);
  }

  evalsha(...args: Argument[]): Promise<unknown> {
    return this.call("EVALSHA", ...args);
  }

  ping(): Promise<unknown> {
    return this.call("PING");
  }

  subscribe(channel: string): Promise<unknown> {
    return this.call("SUBSCRIBE", channel);
  }

  unsubscribe(channel: string): Promise<unknown> {
    return this.call("UNSUBSCRIBE", channel);
  }

  ssubscribe(channel: string): Promise<unknown> {
    return this.call("SSUBSCRIBE", channel);
  }

  sunsubscribe(channel: string): Promise<unknown> {
    return this.call("SUNSUBSCRIBE", channel);
  }

  pipeline(): MemoryPipeline {
    return new MemoryPipeline(this);
  }

  async connect(): Promise<void> {
    if (this.status !== "end") throw new Error("Redis is already connecting/connected");
    this.#link.connections.add(this);
    this.open();
  }

  disconnect(reconnect = false): void {
    if (this.status === "end") return;
    this.lose();
    if (reconnect) return this.open();
    this.status = "end";
    this.#link.connections.delete(this);
    for (const { reject } of this.#queue.splice(0)) reject(new Error("Connection is closed."));
    this.emit("end");
  }

  /** Becomes ready, unless its link is down. */
  open(): void {
    this.status = this.#link.isUp ? "connecting" : "reconnecting";
    const wire = this.#link.wire(this);
    this.#wire = wire;
    const opened = () => {
      if (this.status !== "connecting" || this.#wire !== wire) return;
      this.emit("connect");
      this.status = "ready";
      for (const request of this.#queue.splice(0)) this.#send(request);
      this.emit("ready");
    };
    wire.toServer(() => wire.toClient(opened));
  }

  /** Loses the connection: answers that are on their way do not arrive. */
  lose(): void {
    this.#wire.close();
    for (const { kind, channel, hear } of this.#subscriptions.values())
      this.#link.server.unsubscribe(kind, channel, hear);
    this.#subscriptions.clear();
    const unanswered = [...this.#unanswered];
    this.#unanswered.clear();
    this.status = "reconnecting";
    if (this.options.autoResendUnfulfilledCommands !== false) this.#queue.unshift(...unanswered);
    else for (const { reject } of unanswered) reject(new Error("Connection is closed."));
    this.emit("close");
  }

  #send({ command, resolve, reject }: Request): void {
    // A new object at each sending: a late answer to the first sending is no answer to the second.
    const request = { command, resolve, reject };
    this.#unanswered.add(request);
    const wire = this.#wire;
    wire.toServer(() => {
      let settle: () => void;
      try {
        const reply = this.#execute(command, wire);
        settle = () => resolve(toUser(reply));
      } catch (error) {
        const told = error instanceof ReplyError ? error : new ReplyError(`ERR it failed: ${String(error)}`);
        settle = () => reject(told);
      }
      wire.toClient(() => {
        if (this.#unanswered.delete(request)) settle();
      });
    });
  }

  #execute(command: readonly string[], wire: Wire): Reply {
    const [, sharded, not] = /^(s?)(un)?subscribe$/i.exec(command[0] ?? "") ?? [];
    if (sharded === undefined) return this.#link.server.execute(command);
    const kind: Kind = sharded ? "spublish" : "publish";
    // A subscription over a wire that is lost goes with the wire.
    if (wire === this.#wire) {
      for (const channel of command.slice(1)) this.#listen(kind, channel, not === undefined);
    }
    return this.#subscriptions.size;
  }

  #listen(kind: Kind, channel: string, isWanted: boolean): void {
    const { server } = this.#link;
    const name = `${kind} ${channel}`;
    const known = this.#subscriptions.get(name);
    if (isWanted && !known) {
      const event = kind === "spublish" ? "smessage" : "message";
      const hear: Subscriber = (...message) =>
        this.#wire.toClient(() => {
          if (this.#subscriptions.get(name)?.hear === hear) this.emit(event, ...message.map(fromBytes));
        });
      // First, because the server may refuse: the channel is subscribed only when the server has said so.
      server.subscribe(kind, channel, hear);
      this.#subscriptions.set(name, { kind, channel, hear });
    } else if (!isWanted && known) {
      this.#subscriptions.delete(name);
      server.unsubscribe(kind, channel, known.hear);
    }
  }
}

/** Commands that are sent together. */
class MemoryPipeline {
  readonly #connection: MemoryConnection;
  readonly #commands: Argument[][] = [];

  constructor(connection: MemoryConnection) {
    this.#connection = connection;
  }

  eval(...args: Argument[]): this {
    return this.#add("EVAL", args);
  }

  evalsha(...args: Argument[]): this {
    return this.#add("EVALSHA", args);
  }

  wait(...args: Argument[]): this {
    return this.#add("WAIT", args);
  }

  async exec(): Promise<[Error | null, unknown][]> {
    const sent = this.#commands.map((command) => this.#connection.call(...command));
    const answers = await Promise.allSettled(sent);
    return answers.map((answer) =>
      answer.status === "fulfilled" ? [null, answer.value] : [answer.reason as Error, null],
    );
  }

  #add(name: string, args: readonly Argument[]): this {
    this.#commands.push([name, ...args]);
    return this;
  }
}
