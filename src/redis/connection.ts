/**
 * The part of ioredis that this library uses. Public types accept a connection by structure, never by its class. The
 * classes of ioredis 5 and 6 are different types to the compiler, and a project may hold both.
 */
import type { EvalArguments } from "../scripts/script.js";
import { slotOf } from "./slots.js";

export type { EvalArguments };

/**
 * An ioredis `Redis` or `Cluster`, of version 5.4 or later or 6; or what `fromNodeRedis` of `holdfast/node-redis`
 * makes.
 */
export interface RedisConnection {
  /** The state of the connection: `ready` and the like. */
  readonly status: string;
  /** Runs a script by its SHA1. */
  evalsha(...args: never[]): unknown;
  /** Runs a script by its text. */
  eval(...args: never[]): unknown;
  /** Makes another connection with the same options: the subscriber. */
  duplicate(...args: never[]): unknown;
}

type Listener = (...args: never[]) => void;

export interface Pipeline {
  eval(...args: EvalArguments): Pipeline;
  wait(replicas: number, timeout: number): Pipeline;
  exec(): Promise<[Error | null, unknown][] | null>;
}

/** A socket: data written while it is corked travels together. */
export interface Stream {
  cork(): void;
  uncork(): void;
  unref(): void;
  destroy(): void;
  on(event: "error", listener: Listener): unknown;
  /** The error that closed it, if one did. */
  readonly errored?: Error | null;
}

/** A {@link RedisConnection} as the inside of the library sees it. */
export interface Connection {
  readonly status: string;
  readonly options: ConnectionOptions;
  readonly isCluster?: boolean;
  /** The socket, while there is one; a Cluster has none of its own. */
  readonly stream?: Stream | undefined;
  evalsha(...args: EvalArguments): Promise<unknown>;
  eval(...args: EvalArguments): Promise<unknown>;
  call(command: string, ...rest: string[]): Promise<unknown>;
  pipeline(): Pipeline;
  duplicate(...args: unknown[]): Connection;
  on(event: string | symbol, listener: Listener): unknown;
  once(event: string, listener: Listener): unknown;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
}

export interface ConnectionOptions {
  readonly keyPrefix?: string;
  readonly redisOptions?: ConnectionOptions;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly db?: number;
  readonly host?: string;
  readonly port?: number;
  /** The path of a Unix socket. */
  readonly path?: string;
  readonly sentinels?: readonly { readonly host?: string; readonly port?: number }[] | null;
  /** Of the master, where sentinels are asked. */
  readonly name?: string;
}

/** A cluster client: which master serves which slot, and the connections to them. */
export interface ClusterConnection extends Connection {
  readonly isCluster: true;
  /** Slot → `host:port` of its master, then of its replicas. */
  readonly slots: readonly (readonly string[] | undefined)[];
  nodes(role: "master" | "all"): readonly ServerConnection[];
  refreshSlotsCache?(): void;
}

/** A connection to one server that subscribes. */
export interface SubscriberConnection extends Connection {
  duplicate(overrides?: object): SubscriberConnection;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  sunsubscribe(...channels: string[]): Promise<unknown>;
  ping(): Promise<unknown>;
}

/** One server: it can be asked, and connections to it can be made. */
export type ServerConnection = Pick<SubscriberConnection, "options" | "call" | "duplicate"> &
  Partial<Pick<Connection, "stream" | "disconnect">>;

/** `host:port`, as {@link ClusterConnection.slots} names servers. */
export function addressOf({ options }: Pick<Connection, "options">): string {
  return `${options.host}:${options.port}`;
}

/**
 * Names the server that has this key or channel: "" without a cluster. On a cluster the name is its address, or the key's slot
 * while the address is not known.
 */
export function masterAddress(connection: Connection, key: string): string {
  if (!isCluster(connection)) return "";
  const slot = slotOf(key);
  return connection.slots[slot]?.[0] ?? String(slot);
}

export function isCluster(connection: Connection): connection is ClusterConnection {
  return connection.isCluster === true;
}

/**
 * Closes the socket of a connection, or of a cluster's connection to the node at this address, which has been silent:
 * ioredis makes it anew, and sends what has no answer once more.
 */
export function reset(connection: Connection, address = ""): void {
  const silent: ServerConnection | undefined = isCluster(connection)
    ? connection.nodes("all").find((node) => addressOf(node) === address)
    : (connection as SubscriberConnection);
  // A disconnect would wait for the server to close its side, too.
  if (silent?.stream) silent.stream.destroy();
  else silent?.disconnect?.(true);
}

/**
 * Makes ioredis ask where the slots of a cluster are. By itself it asks when a node says MOVED or closes its
 * connection. A node whose machine or network has died does neither, so its successor would not be found until TCP
 * gives up.
 */
export function lookForMasters(connection: Connection): void {
  if (isCluster(connection)) connection.refreshSlotsCache?.();
}

/** Refuses what is no ioredis connection, and a connection with a key prefix: its keys and channels would not match. */
export function checkConnection(value: unknown): Connection {
  const connection = (value ?? {}) as Connection;
  const methods = ["evalsha", "eval", "duplicate"] as const;
  if (!connection.options || methods.some((name) => typeof connection[name] !== "function")) {
    throw new TypeError(
      "redis must be an ioredis Redis or Cluster, or fromNodeRedis(client) of holdfast/node-redis; LockClient.connect takes " +
        "a URL or options",
    );
  }
  const { keyPrefix, redisOptions } = connection.options;
  if (keyPrefix || redisOptions?.keyPrefix) {
    // ioredis prefixes keys but not channels, so releases would be announced where nobody listens.
    throw new TypeError("redis must not use ioredis' keyPrefix; give the LockClient option `prefix` instead");
  }
  return connection;
}
