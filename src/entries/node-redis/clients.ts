/**
 * The part of node-redis that this entry uses, of versions 5 and 6: by structure, since their types differ and a project
 * may hold both.
 */

type Listener = (...args: never[]) => void;
type MessageListener = (message: string, channel: string) => void;

/** What `createClient` makes: a client of one server. */
export interface PlainClient {
  /** It is connected, or on its way there. */
  readonly isOpen: boolean;
  readonly isReady: boolean;
  /** How often it has been connected. */
  readonly socketEpoch?: number;
  readonly options?: PlainOptions;
  connect(): Promise<unknown>;
  destroy(): void;
  duplicate(overrides: object): PlainClient;
  sendCommand(args: readonly string[], options: object): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<unknown>;
  unsubscribe(channel: string, listener: MessageListener): Promise<unknown>;
  sSubscribe(channel: string, listener: MessageListener): Promise<unknown>;
  sUnsubscribe(channel: string, listener: MessageListener): Promise<unknown>;
  on(event: string | symbol, listener: Listener): unknown;
  ref(): void;
  unref(): void;
}

export interface PlainOptions {
  readonly socket?: {
    readonly host?: string;
    readonly port?: number;
    /** Of a Unix socket. */
    readonly path?: string;
  };
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
  /** By slot; empty until it is connected, and another array whenever it has looked where the slots are. */
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[];
  readonly masters: readonly ClusterNode[];
  readonly _slots?: { rediscover?(startWith: PlainClient): Promise<unknown> };
  connect(): Promise<unknown>;
  nodeClient(node: ClusterNode): Promise<PlainClient>;
  sendCommand(
    firstKey: string,
    isReadonly: boolean,
    args: readonly string[],
    options: object,
  ): Promise<unknown>;
  on(event: string | symbol, listener: Listener): unknown;
}

/** What `createSentinel` makes. */
export interface SentinelClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  connect(): Promise<unknown>;
  /** Calls fn with the client of the master, as soon as that is connected. */
  _execute<T>(isReadonly: boolean, fn: (master: PlainClient) => Promise<T>): Promise<T>;
  on(event: string | symbol, listener: Listener): unknown;
}

/**
 * How each command is sent, whatever the user has set for their own: replies in the shapes that the core reads, and no
 * time-out but the core's, after which it keeps account of what may still arrive.
 */
export const PLAINLY: object = {
  typeMapping: {},
  timeout: undefined,
  abortSignal: undefined,
  asap: undefined,
};

/** A reply of Redis that is an error begins with its code. Errors of Node and node-redis begin with a word, or lower case. */
const REPLY = /^-?[A-Z][A-Z0-9_]*(?: |$)/;

/** An error as ioredis would name it: the core tells replies of Redis from a connection's errors by that. */
export function named(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(typeof error === "string" ? error : "unknown error");
  const { message } = error;
  if (REPLY.test(message)) return Object.assign(new Error(message), { name: "ReplyError" });
  if (message !== "") return error;
  // One for each address that was tried; and time-outs of node-redis say nothing at all.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return first instanceof Error ? first : new Error(error.constructor.name);
}

/** The server does not let this user in: trying again gets the same answer. */
export function isRefusal(error: Error): boolean {
  return error.name === "ReplyError" && /^(WRONGPASS|NOAUTH|NOPERM)\b/.test(error.message);
}

export function rethrow(error: unknown): never {
  throw named(error);
}

export function ignore(): void {
  // Told elsewhere, by an event or by the calls that need it.
}

/** The slot of a key or channel is elsewhere. */
export function isMoved(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("MOVED ");
}

/** The error of one that is closed already tells nothing new. */
export function destroy(client: PlainClient): void {
  try {
    client.destroy();
  } catch {
    // Version 5 does not destroy one that is not open.
  }
}

/** One for the library alone, with the options that say where the server is and who asks. */
export function another(source: PlainClient): PlainClient {
  return source.duplicate({
    socket: { ...source.options?.socket, reconnectStrategy: false },
    clientSideCache: undefined,
    commandsQueueMaxLength: undefined,
    // A command that nothing here needs.
    disableClientInfo: true,
    emitInvalidate: false,
    maintNotifications: "disabled",
    pingInterval: undefined,
    readonly: false,
  });
}

/** Connects it. Something on the way may take the socket though there is no server behind it, so that has to answer first. */
export async function meet(client: PlainClient): Promise<void> {
  await client.connect();
  await client.sendCommand(["PING"], PLAINLY);
}
