/**
 * What the fault tests share: a lock behind a proxy of its own ("bed") on a real server or cluster, matchers for the
 * library's scripts, and what may be on the server when all is over. Knows the scripts by name; nothing else of src.
 */
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { afterAll, expect, vi } from "vitest";
import { isLockError, type Lock, LockClient, type LockClientOptions } from "../../src/index.js";
import * as generated from "../../src/scripts/generated.js";
import { type Kind, PLAIN } from "../contract/kinds.js";
import {
  allKeys,
  type ClientOptions,
  type ClusterClientOptions,
  type ClusterProxy,
  type FaultProxy,
  forFile,
  isNodeRedisWanted,
  isPresence,
  type KeyState,
  type Matcher,
  nodeRedisClusterInstead,
  nodeRedisInstead,
  PATIENCE,
  type RedisCluster,
  type RedisServer,
  type ScanClient,
  type ScanCluster,
  startCluster,
  startClusterProxy,
  startProxy,
  startRedis,
  UNHURRIED,
  type UserRedis,
  until,
  type Watched,
} from "../support/index.js";

export { type Watched, watch } from "../support/outcome.js";

export type ScriptName = "acquire" | "pass" | "reenter" | "renew" | "extend" | "release" | "undo" | "state";

interface ScriptLike {
  readonly name: string;
  readonly modern: { readonly text: string; readonly sha1: string };
  readonly legacy: { readonly text: string; readonly sha1: string };
}

const scripts = Object.values(generated) as unknown as ScriptLike[];

/** Matches this step of any kind of lock, by EVAL or EVALSHA; with `word`, only where a key or argument contains it. */
export function script(name: ScriptName, word = ""): Matcher {
  const found = scripts.filter((candidate) => candidate.name?.endsWith(`/${name}`));
  if (found.length === 0) throw new Error(`no script is called ${name}`);
  const bodies = new Set(
    found.flatMap(({ modern, legacy }) => [modern, legacy]).flatMap(({ text, sha1 }) => [text, sha1]),
  );
  return ([verb = "", body = "", ...rest]) =>
    /^EVAL(SHA)?$/.test(verb) && bodies.has(body) && rest.some((each) => each.includes(word));
}

const OWN = ["EVAL", "EVALSHA", "SUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "SUNSUBSCRIBE", "PING", "PUBSUB"];

/** The commands that the library sends of itself, but for its presence; the rest is how ioredis sets up connections. */
export const ownCommand: Matcher = (command) => OWN.includes(command[0] ?? "") && !isPresence(command);

export type Topology = "standalone" | "cluster";
export type Version = 5 | 6;

export interface BedOptions {
  /** Default the plain lock. */
  readonly kind?: Kind;
  readonly topology?: Topology;
  readonly version?: Version;
  /** Options of the connection, or of those to the nodes. */
  readonly redis?: ClientOptions;
  readonly cluster?: ClusterClientOptions;
  /** Calls of the client are {@link UNHURRIED} unless this says how long they may take. */
  readonly client?: LockClientOptions;
  /** Standalone: the client's subscriber goes through a proxy of its own. */
  readonly split?: boolean;
}

/** One lock of one client behind a proxy of its own. */
export interface Bed extends AsyncDisposable {
  readonly kind: Kind;
  readonly name: string;
  readonly redis: UserRedis;
  readonly client: LockClient;
  readonly lock: Lock;
  /** A lock of the bed's kind, of this client; of the bed's name if none is given. */
  make(name?: string): Lock;
  /** What keeps that lock out while somebody else has it, of this client. */
  rival(name?: string): Lock;
  /** In front of the server that has the lock. */
  readonly proxy: FaultProxy;
  /** In front of the server for the subscriber; the same one unless the bed is split. */
  readonly subscribing: FaultProxy;
  /** The connections that the client made for itself; filled when the bed is split. */
  readonly subscribers: readonly Redis[];
  /** Holds back replies of every server, until they are restored at the end. */
  delayAll(ms: number, match: Matcher): void;
  readonly observer: ScanClient | ScanCluster;
  /** `lost` and `error` events of the client. */
  readonly troubles: readonly [name: "lost" | "error", event: unknown][];
  /** All keys that have to do with the lock. */
  keys(): Promise<Record<string, KeyState>>;
  dispose(): Promise<void>;
}

let names = 0;

/** A lock's name that no other test has, and that is no part of another's. */
export function freshName(): string {
  return `lock-${process.pid}-${++names}.`;
}

export class Stage implements AsyncDisposable {
  #server: RedisServer | undefined;
  #cluster: RedisCluster | undefined;

  static async start(topologies: readonly Topology[], args: readonly string[] = []): Promise<Stage> {
    const stage = new Stage();
    [stage.#server, stage.#cluster] = await Promise.all([
      topologies.includes("standalone") ? startRedis({ args }) : undefined,
      topologies.includes("cluster") ? startCluster({ masters: 3, args }) : undefined,
    ]);
    // A late EVALSHA must not fail for a script that its node has never seen.
    for (const node of [stage.#server, ...(stage.#cluster?.nodes ?? [])]) {
      for (const { modern, legacy } of scripts.filter((each) => each.modern)) {
        await node?.call("SCRIPT", "LOAD", (node.hasFeaturesOf("7.0") ? modern : legacy).text);
      }
    }
    return stage;
  }

  get server(): RedisServer {
    if (this.#server === undefined) throw new Error("this stage has no server");
    return this.#server;
  }

  get cluster(): RedisCluster {
    if (this.#cluster === undefined) throw new Error("this stage has no cluster");
    return this.#cluster;
  }

  async bed(options: BedOptions = {}): Promise<Bed> {
    return options.topology === "cluster" ? this.#onCluster(options) : this.#onServer(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#server?.stop(), this.#cluster?.stop()]);
  }

  async #onServer(options: BedOptions): Promise<Bed> {
    const { version = 6, redis = {}, split = false } = options;
    const proxy = await startProxy(this.server);
    const subscribing = split ? await startProxy(this.server) : proxy;
    const all = { host: proxy.host, port: proxy.port, ...redis };
    const user = userRedis(version, all);
    const subscribers: Redis[] = [];
    if (split) {
      const duplicate = (overrides: object): Redis => {
        const subscriber = new Redis({ ...all, ...overrides, port: subscribing.port });
        subscribers.push(subscriber);
        return subscriber;
      };
      Object.assign(user, { duplicate });
    }
    const observer = this.server.connect(redis.db === undefined ? {} : { db: redis.db });
    const delayAll: Bed["delayAll"] = (ms, match) => proxy.delayReplies(ms, match);
    const parts = { proxy, subscribing, subscribers, observer, delayAll };
    return bedOf(freshName(), user, parts, options, async () => {
      observer.disconnect();
      await Promise.all([proxy.stop(), split && subscribing.stop()]);
    });
  }

  async #onCluster(options: BedOptions): Promise<Bed> {
    const { version = 6, redis = {}, cluster = {} } = options;
    const proxies: ClusterProxy = await startClusterProxy(this.cluster);
    const all = { natMap: proxies.natMap, ...cluster, redisOptions: redis };
    const user = isNodeRedisWanted
      ? nodeRedisClusterInstead(proxies.startupNodes, proxies.natMap)
      : ((version === 6
          ? new Cluster(proxies.startupNodes, all)
          : new Cluster5(proxies.startupNodes, all as object)) as unknown as UserRedis);
    const observer = this.cluster.connect();
    const name = freshName();
    const proxy = await proxies.proxyFor(name);
    const delayAll: Bed["delayAll"] = (ms, match) => {
      for (const each of proxies.proxies.values()) each.delayReplies(ms, match);
    };
    const parts = { proxy, subscribing: proxy, subscribers: [], observer, delayAll };
    return bedOf(name, user, parts, options, async () => {
      observer.disconnect();
      await proxies.stop();
    });
  }
}

function userRedis(version: Version, options: ClientOptions): UserRedis {
  if (isNodeRedisWanted) return nodeRedisInstead(options as object);
  return (version === 6 ? new Redis(options) : new Redis5(options as object)) as unknown as UserRedis;
}

async function bedOf(
  name: string,
  redis: UserRedis,
  parts: Pick<Bed, "proxy" | "subscribing" | "subscribers" | "observer" | "delayAll">,
  options: BedOptions,
  end: () => Promise<void>,
): Promise<Bed> {
  redis.on("error", () => {});
  const { kind = PLAIN } = options;
  const client = new LockClient(redis, { ...UNHURRIED, ...options.client });
  const troubles: ["lost" | "error", unknown][] = [];
  client.on("lost", (event) => troubles.push(["lost", event]));
  client.on("error", (event) => troubles.push(["error", event]));
  await until("the client is ready", () => redis.status === "ready");
  // Again and again, for a client of little patience on a busy machine.
  // Of a user who may not do all: an answer as well.
  const asked = (): Promise<boolean> =>
    client.ready().then(
      () => true,
      (error: unknown) => isLockError(error, "UNSUPPORTED"),
    );
  await until("it has asked the server", asked);
  const dispose = async (): Promise<void> => {
    parts.proxy.restore();
    parts.subscribing.restore();
    await client.close({ timeout: 0 });
    redis.disconnect();
    await end();
  };
  const make: Bed["make"] = (lockName = name) => kind.make(client, lockName);
  return {
    kind,
    name,
    redis,
    client,
    lock: make(),
    make,
    rival: (lockName = name) => kind.rival.make(client, lockName),
    ...parts,
    troubles,
    keys: async () => Object.fromEntries(await allKeys(parts.observer, name)),
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

/** Milliseconds: far below the leases and polls that tests take for "never". */
export const SOON: number = PATIENCE;

/** Resolves with what the call came to; fails if that takes long, or if it fails. */
export async function soon<T>(watched: Watched<T>, timeout: number = SOON): Promise<T> {
  await until("the call is over", () => watched.state !== "pending", { timeout });
  return watched.promise;
}

/** Resolves with what the call fails with; fails if that takes long, or if it succeeds. */
export async function failsSoon(watched: Watched<unknown>, timeout: number = SOON): Promise<unknown> {
  await until("the call is over", () => watched.state !== "pending", { timeout });
  if (watched.state === "resolved") throw new Error(`expected a failure, got ${String(watched.value)}`);
  return watched.error;
}

/** What the call gives, asked again as often as a client of little patience needs on a busy machine. */
export async function atLast<T>(call: () => Promise<T>): Promise<T> {
  const outcome = await until("it is answered in time", async () => {
    try {
      return { value: await call() };
    } catch (error) {
      if (!isLockError(error, "UNAVAILABLE")) return { error };
      throw error;
    }
  });
  if ("error" in outcome) throw outcome.error;
  return outcome.value as T;
}

/** Lets all run that is due without any further input. */
export async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Servers for the tests of one file. The file fails if any promise rejected with nobody to hear it. */
export function useStage(...topologies: readonly Topology[]): Promise<Stage> {
  failOnUnhandledRejections();
  return forFile(Stage.start(topologies));
}

/** For tests that run on every kind of lock: they wait most of the time, so more of them go side by side. */
export function manyAtOnce(): void {
  vi.setConfig({ maxConcurrency: 8 });
}

/** Fails the file if any promise rejected with nobody to hear it. */
export function failOnUnhandledRejections(): void {
  const seen: unknown[] = [];
  process.on("unhandledRejection", (reason) => seen.push(reason));
  afterAll(async () => {
    await turn();
    expect(seen).toEqual([]);
  });
}
