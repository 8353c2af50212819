/** Makes the connection of one command. */
import { Cluster, Redis } from "ioredis";
import type { RedisConnection } from "../../index.js";

/** What the commands themselves need of a connection, in addition to what the library needs. */
export interface Server extends RedisConnection {
  readonly options: { readonly host?: string; readonly port?: number };
  readonly isCluster?: boolean;
  /** Of a cluster only. */
  nodes?(role: "master"): Server[];
  /** Of a cluster only: the nodes of each slot, as `host:port`, the master first. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  call(command: string, ...args: string[]): Promise<unknown>;
  duplicate(): Server;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (error: Error) => void): unknown;
  disconnect(): void;
}

export interface Address {
  readonly url: string;
  readonly isCluster: boolean;
  /** The name of the master, if the URL is that of a sentinel. */
  readonly sentinelName: string | undefined;
}

/** Milliseconds; short, because a person waits for the answer. */
const CONNECT_TIMEOUT = 5_000;

/** @throws TypeError for what is no URL of Redis; it does not repeat the password */
export function openServer({ url, isCluster, sentinelName }: Address): Server {
  const { hostname, port, username, password, pathname, protocol, search, hash } = parse(url);
  const host = hostname.replace(/^\[(.*)\]$/, "$1") || "127.0.0.1";
  const at = { host, port: Number(port || (sentinelName === undefined ? 6379 : 26379)) };
  const db = Number(pathname.slice(1) || 0);
  if (!Number.isInteger(db))
    throw new TypeError("the path of a URL of Redis must be the number of a database, or empty");
  // ioredis takes options there: one that is passed over, as ?db=3, would be another database than that of the services.
  if (search || hash)
    throw new TypeError("a URL of Redis must have no ? or # here: redis://host/3 is database 3");
  const own = {
    ...(username ? { username: decoded(username) } : {}),
    ...(password ? { password: decoded(password) } : {}),
    ...(protocol === "rediss:" ? { tls: {} } : {}),
    connectTimeout: CONNECT_TIMEOUT,
  };
  if (isCluster && sentinelName !== undefined)
    throw new TypeError("--cluster and --sentinel are two ways to find a master: use one of them");
  if (isCluster && db !== 0) throw new TypeError(`a cluster has only database 0, but the URL names ${db}`);
  if (isCluster) return new Cluster([at], { redisOptions: own }) as unknown as Server;
  if (sentinelName === undefined) return new Redis({ ...at, ...own, db }) as unknown as Server;
  // Of these ioredis takes none from the option tls: it would send the password to the master in plain text.
  const secure = protocol === "rediss:" ? { sentinelTLS: {}, enableTLSForSentinelMode: true } : {};
  const asked = { sentinels: [at], name: sentinelName, failoverDetector: true, ...secure };
  return new Redis({ ...asked, ...own, db }) as unknown as Server;
}

/** @throws TypeError for what is not percent-encoded; it does not repeat that */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new TypeError("user and password in a URL of Redis must be percent-encoded: % is %25 there");
  }
}

/** The address for people: without user and password. */
export function addressOf(url: string): string {
  const { protocol, host, pathname } = parse(url);
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`;
}

function parse(url: string): URL {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    throw new TypeError("the URL of Redis must be redis://host:port or rediss://host:port");
  }
  return new URL(url);
}
