/**
 * The part of node-redis that this entry uses, of versions 5 and 6: by structure, since their types differ and a project
 * may hold both.
 */
import { clearTimeout, setTimeout } from "../../base/platform.js";
import type { ConnectionOptions } from "../../redis/connection.js";

type Listener = (...args: never[]) => void;
type MessageListener = (message: string, channel: string) => void;

/** What `createClient` makes: a client of one server. */
export interface PlainClient {
  /** True if the client is connected, or on its way there. */
  readonly isOpen: boolean;
  readonly isReady: boolean;
  /** How often the client has been connected. */
  readonly socketEpoch?: number;
  readonly options?: PlainOptions;
  connect(): Promise<unknown>;
  /** Ends the client when all its commands are answered. */
  close(): Promise<unknown>;
  destroy(): void;
  duplicate(overrides: object): PlainClient;
  sendCommand(args: readonly string[], options: object): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<unknown>;
  unsubscribe(channel: string, listener: MessageListener): Promise<unknown>;
  sSubscribe(channel: string, listener: MessageListener): Promise<unknown>;
  sUnsubscribe(channel: string, listener: MessageListener): Promise<unknown>;
  on(event: string | symbol, listener: Listener): unknown;
  unref(): void;
}

export interface PlainOptions {
  readonly socket?: {
    readonly host?: string;
    readonly port?: number;
    /** The path of a Unix socket. */
    readonly path?: string;
  };
}

/** What a connection of the library takes its options from. */
export type Template = Pick<PlainClient, "duplicate" | "options">;

/** What tells where Redis is, and with which options to connect there. */
export interface Source {
  /** Where the server is, for the texts of errors. */
  readonly options: ConnectionOptions;
  /** Called at each attempt to connect. */
  template(): Promise<Template>;
  /** The server is a replica by now. */
  doubt?(): void;
  /** Called when there is another server. */
  readonly onMove?: Set<() => void>;
}

/** A server of a cluster. */
export interface ClusterNode {
  readonly host: string;
  readonly port: number;
  /** `host:port`, as the servers name it. */
  readonly address: string;
  readonly client?: PlainClient | undefined;
}

/** What `createCluster` makes. */
export interface ClusterClient {
  readonly isOpen: boolean;
  /**
   * The masters by slot; empty until the client is connected, and another array whenever it has looked where the slots
   * are.
   */
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[];
  readonly masters: readonly ClusterNode[];
  readonly replicas: readonly ClusterNode[];
  readonly _slots?: { rediscover?(startWith: PlainClient): Promise<unknown> };
  connect(): Promise<unknown>;
  destroy(): void;
  duplicate(overrides: object): ClusterClient;
  on(event: string | symbol, listener: Listener): unknown;
}

/** What `createSentinel` makes. */
export interface SentinelClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  connect(): Promise<unknown>;
  /** Calls fn with a client of the master, as soon as one is connected that the user has not leased. */
  _execute<T>(isReadonly: boolean, fn: (master: PlainClient) => Promise<T>): Promise<T>;
  /** Where the master is, if a client of it is connected. */
  getMasterNode(): { readonly host: string; readonly port: number } | undefined;
  on(event: string | symbol, listener: Listener): unknown;
}

/**
 * The options of each command, whatever the user has set for their own commands. Replies come in the shapes that the
 * core reads. There is no time-out but the core's, because the core keeps account of what may still arrive after it.
 */
export const PLAINLY: object = {
  typeMapping: {},
  timeout: undefined,
  abortSignal: undefined,
  asap: undefined,
};

/**
 * A reply of Redis that is an error begins with its code. Errors of Node and node-redis begin with a word, or in lower
 * case.
 */
const REPLY = /^-?[A-Z][A-Z0-9_]*(?: |$)/;

/**
 * An error with the name that ioredis would give it: by that the core tells replies of Redis from errors of a
 * connection.
 */
export function named(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(typeof error === "string" ? error : "unknown error");
  const { message } = error;
  if (REPLY.test(message)) return Object.assign(new Error(message), { name: "ReplyError" });
  if (message !== "") return error;
  // An AggregateError has one error for each address that was tried; time-outs of node-redis have no text at all.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return first instanceof Error ? first : new Error(error.constructor.name);
}

/** The error of a connection that was ended. */
export function disconnected(): Error {
  return new Error("disconnected");
}

/** True if the server does not let this user in: another try gets the same answer. */
export function isRefusal(error: Error): boolean {
  return error.name === "ReplyError" && /^(WRONGPASS|NOAUTH|NOPERM)\b/.test(error.message);
}

export function rethrow(error: unknown): never {
  throw named(error);
}

export function ignore(): void {
  // Reported elsewhere, by an event or by the calls that need it.
}

/** True if another master has the slot of the key or channel. */
export function isMoved(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("MOVED ");
}

/** Clients whose socket is on its way. */
const approaching = new WeakSet<PlainClient>();

/**
 * Destroys a client. One whose socket is on its way is destroyed as that connects: node-redis would forget the socket,
 * and leave it open.
 */
export function destroy(client: PlainClient): void {
  if (approaching.has(client)) client.on("connect", () => destroyNow(client));
  else destroyNow(client);
}

/** Clients that {@link destroySettled} is about to destroy. */
const unwanted = new WeakSet<PlainClient>();

/**
 * Destroys a client that node-redis connects by itself: one that has no socket yet as that connects, or as its next
 * attempt fails.
 */
export function destroySettled(client: PlainClient): void {
  if (client.isReady) destroyNow(client);
  if (unwanted.has(client)) return;
  unwanted.add(client);
  for (const event of ["connect", "error"]) client.on(event, () => destroyNow(client));
}

/** The error of a client that is closed already tells nothing new. */
function destroyNow(client: PlainClient): void {
  try {
    client.destroy();
  } catch {
    // Version 5 throws for a client that is not open.
  }
}

/** Milliseconds that the last commands of a client may take. */
const LAST_ANSWERS = 2_000;

/** Ends a client when its last commands are answered, or after {@link LAST_ANSWERS}. */
export function close(client: PlainClient): void {
  client.close().catch(ignore);
  setTimeout(() => destroyNow(client), LAST_ANSWERS).unref();
}

/** The clients of users that the library has connected, or may not connect. */
const met = new WeakSet<object>();

/** Connects the client of a user, unless it is open, or was once: then whoever closed it wanted that. */
export async function connectOnce(
  given: Pick<PlainClient, "isOpen" | "socketEpoch" | "connect">,
): Promise<void> {
  const isNew = !met.has(given) && !given.isOpen && !given.socketEpoch;
  met.add(given);
  if (isNew) await given.connect();
}

/** Makes a client for the library alone, with the options that say where the server is and who asks. */
export function another(source: Template): PlainClient {
  return source.duplicate({
    // Without a ping, a socket that may not be silent would not last; and a WAIT is answered late.
    socket: { ...source.options?.socket, reconnectStrategy: false, socketTimeout: undefined },
    clientSideCache: undefined,
    commandsQueueMaxLength: undefined,
    // This would send a command that nothing here needs.
    disableClientInfo: true,
    emitInvalidate: false,
    maintNotifications: "disabled",
    pingInterval: undefined,
    readonly: false,
  });
}

/**
 * Connects a client, and waits for an answer: something on the way may take the socket though there is no server behind
 * it.
 */
export async function meet(client: PlainClient): Promise<void> {
  approaching.add(client);
  client.on("connect", () => approaching.delete(client));
  try {
    await client.connect();
  } catch (error) {
    // No socket comes any more. Version 6 keeps an account of its clients, and only this takes one out.
    approaching.delete(client);
    destroyNow(client);
    throw error;
  }
  await client.sendCommand(["PING"], PLAINLY);
}

/**
 * Does what may never end; rejects when the time, in milliseconds, is over. Without that, a server that takes the
 * connection and says nothing more would hold up all calls.
 */
export async function inTime<T>(time: number, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("connection timeout")), time).unref();
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}
