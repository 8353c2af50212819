/**
 * The part of ioredis that this library uses. Public types accept a connection by structure, never by its class:
 * the classes of ioredis 5 and 6 are different types to the compiler, and a project may hold both.
 */
import { slotOf } from "./slots.js";

/** An ioredis `Redis` or `Cluster`, of version 5.4 or later or 6. */
export interface RedisConnection {
  readonly status: string;
  evalsha(...args: never[]): unknown;
  eval(...args: never[]): unknown;
  duplicate(...args: never[]): unknown;
}

type Listener = (...args: never[]) => void;

export interface Pipeline {
  evalsha(sha1: string, keys: number, ...rest: string[]): Pipeline;
  eval(text: string, keys: number, ...rest: string[]): Pipeline;
  wait(replicas: number, timeout: number): Pipeline;
  exec(): Promise<[Error | null, unknown][] | null>;
}

/** A socket: what is written while it is corked travels together. */
export interface Stream {
  cork(): void;
  uncork(): void;
  ref(): void;
  unref(): void;
  on(event: "error", listener: Listener): unknown;
  /** Why it was closed, if by an error. */
  readonly errored?: Error | null;
}

/** A {@link RedisConnection} as the inside of the library sees it. */
export interface Connection {
  readonly status: string;
  readonly options: ConnectionOptions;
  readonly isCluster?: boolean;
  /** The socket, while there is one; a Cluster has none of its own. */
  readonly stream?: Stream | undefined;
  evalsha(sha1: string, keys: number, ...rest: string[]): Promise<unknown>;
  eval(text: string, keys: number, ...rest: string[]): Promise<unknown>;
  call(command: string, ...rest: string[]): Promise<unknown>;
  pipeline(): Pipeline;
  duplicate(...args: unknown[]): Connection;
  on(event: string | symbol, listener: Listener): unknown;
  once(event: string, listener: Listener): unknown;
  off(event: string | symbol, listener: Listener): unknown;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
}

export interface ConnectionOptions {
  readonly keyPrefix?: string;
  readonly redisOptions?: { readonly keyPrefix?: string; readonly autoResendUnfulfilledCommands?: boolean };
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly enableAutoPipelining?: boolean;
  readonly host?: string;
  readonly port?: number;
  /** Of a Unix socket. */
  readonly path?: string;
  readonly sentinels?: readonly object[] | null;
}

/** A cluster client: which master serves which slot, and the connections to them. */
export interface ClusterConnection extends Connection {
  readonly isCluster: true;
  /** Slot → `host:port` of its master, then of its replicas. */
  readonly slots: readonly (readonly string[] | undefined)[];
  nodes(role?: "master" | "slave" | "all"): SubscriberConnection[];
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

/** `host:port`, as {@link ClusterConnection.slots} names servers. */
export function addressOf({ options }: Connection): string {
  return `${options.host}:${options.port}`;
}

/** The address of the master that serves this key or channel, as far as is known. */
export function masterOf({ slots }: ClusterConnection, key: string): string | undefined {
  return slots[slotOf(key)]?.[0];
}

/** Names the server that has this key: "" for the only one of a connection, its slot as long as no more is known. */
export function masterAddress(connection: Connection, key: string): string {
  return isCluster(connection) ? (masterOf(connection, key) ?? String(slotOf(key))) : "";
}

export function isCluster(connection: Connection): connection is ClusterConnection {
  return connection.isCluster === true;
}

/**
 * ioredis looks where the slots of a cluster are when a node says MOVED or closes its connection. One whose machine or
 * network has died does neither, and without this its successor would not be found as long as TCP hopes.
 */
export function lookForMasters(connection: Connection): void {
  if (isCluster(connection)) connection.refreshSlotsCache?.();
}

/** Refuses what is not an ioredis connection, and one whose keys and channels would get different names. */
export function checkConnection(value: unknown): Connection {
  const candidate = value as Partial<Connection> | null | undefined;
  const fits =
    typeof candidate === "object" &&
    candidate !== null &&
    typeof candidate.evalsha === "function" &&
    typeof candidate.eval === "function" &&
    typeof candidate.duplicate === "function" &&
    typeof candidate.options === "object";
  if (!fits) throw new TypeError("redis must be an ioredis Redis or Cluster");
  const connection = candidate as Connection;
  const { keyPrefix, redisOptions } = connection.options;
  if (keyPrefix || redisOptions?.keyPrefix) {
    // ioredis prefixes keys but not channels, so releases would be announced where nobody listens.
    throw new TypeError("redis must not use ioredis' keyPrefix; give the LockClient option `prefix` instead");
  }
  return connection;
}

/**
 * Hears the errors of a connection that is the library's own. A TLS socket can fail twice, by the certificate and by what
 * its peer says to that; ioredis hears the first error only, and one that nobody hears ends the process.
 */
export function hearErrors(connection: Connection, listener: (error: Error) => void): void {
  let heard: Stream | undefined;
  connection.on("error", (error: Error) => {
    if (connection.stream !== heard) connection.stream?.on("error", () => {});
    heard = connection.stream;
    listener(error);
  });
}
