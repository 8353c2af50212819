/**
 * Makes the connections of a client. They are like the user's own, so that they lead to the same server, but with
 * options that this library chooses. The library never uses the user's own, whatever becomes of it.
 */
import { noop } from "../base/work.js";
import {
  type ClusterConnection,
  type Connection,
  type ConnectionOptions,
  isCluster,
  type ServerConnection,
  type Stream,
  type SubscriberConnection,
} from "./connection.js";
import type { KeepAlive } from "./keep-alive.js";

/** Options of each connection to one server. What takes too long is a matter of the calls, so nothing here times out. */
const OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
  autoResubscribe: false,
  maxRetriesPerRequest: null,
  enableAutoPipelining: false,
  keyPrefix: undefined,
  commandTimeout: undefined,
  socketTimeout: undefined,
  // The right for CLIENT SETINFO is not asked for.
  disableClientInfo: true,
  monitor: false,
  readOnly: false,
  stringNumbers: false,
  enableReadyCheck: false,
  /** A demoted master may stay a replica for ever, while the name of the master leads elsewhere by now. */
  reconnectOnError: (error: Error) => /\bREADONLY\b/.test(error.message),
};

const CLUSTER_OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  shardedSubscribers: false,
  scaleReads: "master",
  // The loss of a node is told at once, and its successor is looked for.
  clusterNodeRetryStrategy: null,
  // A timer that would keep the process alive. Redirections, losses and silence tell that slots have moved.
  slotsRefreshInterval: 0,
};

/** The connection of a cluster to a node. */
interface Node extends Connection {
  asking?(...args: unknown[]): Promise<unknown>;
}

/** Members inside of ioredis. In a version that has them otherwise, what needs them does nothing. */
interface Inside {
  /** The subscriber of a cluster's own, which nobody needs here. */
  readonly subscriber?: { start(): void };
  /** Rejects all commands, but those that are to be sent again. */
  flushQueue?(error: Error): void;
  readonly prevCommandQueue?: { shift(): { command: { reject(error: Error): void } } | undefined } | null;
}

/** A connection like this one, which lives as `alive` says. */
export function ownConnection(given: Connection, alive: KeepAlive): Connection {
  return isCluster(given) ? ownCluster(given, alive) : ownServer(given as SubscriberConnection, alive);
}

/** As {@link ownConnection}, to one server. `overrides`: options that it has instead. */
export function ownServer(
  given: ServerConnection,
  alive: KeepAlive,
  overrides: object = {},
): SubscriberConnection {
  const { db, sentinels } = given.options;
  const chosen = {
    ...OPTIONS,
    retryStrategy: alive.pauseBefore,
    sentinelRetryStrategy: alive.pauseBefore,
    // A sentinel with old data names a server that is a replica by now; the check reads its role, and asks the next one.
    // And nothing may be sent before the answer to SELECT.
    enableReadyCheck: Boolean(sentinels) || Boolean(db),
    ...overrides,
  };
  const own = given.duplicate(chosen);
  followOptions(own.options, given.options, (name) => !(name in chosen));
  hearErrors(own);
  own.on("error", (error: Error) => refuseWithoutDatabase(own, error));
  alive.add(own);
  return own;
}

function ownCluster(given: ClusterConnection, alive: KeepAlive): Connection {
  const { redisOptions } = given.options;
  const own = given.duplicate([], {
    ...CLUSTER_OPTIONS,
    clusterRetryStrategy: alive.pauseBefore,
    redisOptions: { ...redisOptions, ...OPTIONS },
  });
  const { subscriber } = own as Inside;
  if (subscriber) subscriber.start = noop;
  own.on("error", noop); // without a listener ioredis prints it
  own.on("+node", (node: Node) => {
    // The clusters of other packages have no connections of their own to show.
    if (typeof node.on !== "function") return;
    hearErrors(node);
    hearAsking(node);
    if (!redisOptions) return;
    // A node may have credentials of its own.
    const isShared = (name: keyof ConnectionOptions) =>
      CREDENTIALS.includes(name) && node.options[name] === redisOptions[name];
    followOptions(node.options, redisOptions, isShared);
  });
  alive.add(own);
  return own;
}

const CREDENTIALS: readonly string[] = ["username", "password"];

/**
 * ioredis reads options each time it connects: from now on it finds those of `source`, such as a new password. What it
 * sets itself stays.
 */
function followOptions(
  own: ConnectionOptions,
  source: ConnectionOptions,
  follows: (name: keyof ConnectionOptions) => boolean,
): void {
  for (const name of Object.keys(source) as (keyof ConnectionOptions)[]) {
    if (!follows(name)) continue;
    const set = (value: unknown) => Object.defineProperty(own, name, { value, writable: true });
    Object.defineProperty(own, name, { get: () => source[name], set, enumerable: true, configurable: true });
  }
}

/**
 * Hears the errors of a connection. A TLS socket can fail twice: by the certificate, and by the peer's answer to that.
 * ioredis listens to the first error only, and an error without a listener ends the process.
 */
function hearErrors(connection: Connection): void {
  let heard: Stream | undefined;
  connection.on("error", () => {
    if (connection.stream !== heard) connection.stream?.on("error", noop);
    heard = connection.stream;
  });
}

/**
 * Where Redis refuses a SELECT, ioredis goes on in database 0, and a lock there excludes nobody. So no command is sent:
 * those that wait are refused likewise, and the connection is made anew.
 */
function refuseWithoutDatabase(own: Connection, error: Error & { command?: { name?: string } }): void {
  if (error.command?.name !== "select") return;
  const inside = own as Inside;
  inside.flushQueue?.(error);
  for (let item = inside.prevCommandQueue?.shift(); item; item = inside.prevCommandQueue?.shift())
    item.command.reject(error);
  own.disconnect(true);
}

/**
 * ioredis (5.4 to 6.0) sends ASKING ahead of a command to the master that a slot is moving to, and ignores its promise:
 *
 *   node         answers ASK: the slot is moving
 *   ioredis      sends ASKING and the command to the other master
 *   connection   ends before it answers: both promises reject; nobody handles that of ASKING, which ends the process
 */
function hearAsking(node: Node): void {
  const { asking } = node;
  if (typeof asking !== "function") return;
  node.asking = (...args) => {
    const answer = asking.apply(node, args);
    answer.catch(noop); // the command behind it reports the failure
    return answer;
  };
}
