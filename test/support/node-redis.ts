/** Clients of the package redis, versions 5 and 6. */
import { createRequire } from "node:module";
import type { RedisConnection } from "../../src/index.js";

export type NodeRedisVersion = 5 | 6;

/** The part of a client that the tests use, in either version. */
export interface TestClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  connect(): Promise<unknown>;
  close(): Promise<unknown> | undefined;
  destroy(): unknown;
  sendCommand(...args: never[]): unknown;
  withTypeMapping(...args: never[]): unknown;
  on(event: string, listener: (...args: never[]) => void): unknown;
  listeners(event: string): unknown[];
}

/** Loads a package where it is asked for: each has hundreds of files, and most tests need none of them. */
const load = createRequire(import.meta.url);

type Make = (options: object) => TestClient;

/** `createClient`, `createCluster` and `createSentinel` of one version; each client has an `error` listener. */
export interface NodeRedis {
  readonly client: Make;
  readonly cluster: Make;
  readonly sentinel: Make;
}

export function nodeRedis(version: NodeRedisVersion): NodeRedis {
  const { createClient, createCluster, createSentinel } = load(version === 6 ? "redis" : "redis5") as Record<
    string,
    Make
  >;
  const heard =
    (make: Make | undefined): Make =>
    (options) => {
      if (!make) throw new Error("this package makes no such client");
      const made = make(options);
      made.on("error", () => {});
      return made;
    };
  return { client: heard(createClient), cluster: heard(createCluster), sentinel: heard(createSentinel) };
}

/** A connection of the user, of either version of ioredis. */
export interface UserRedis extends RedisConnection {
  ping(): Promise<string>;
  disconnect(): void;
  on(event: string, listener: (...args: never[]) => void): unknown;
}
