/**
 * The fault tests share "beds", matchers for the library's scripts, and stages of servers. A bed is a lock behind its
 * own proxy on a real server or cluster. Of the library's inner parts, this file knows only the names of scripts.
 */
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { afterAll, expect, vi } from "vitest";
import { isLockError, type Lock, LockClient, type LockClientOptions } from "../../src/index.js";
import * as generated from "../../src/scripts/generated.js";
import {
  allKeys,
  type ClientOptions,
  type ClusterProxy,
  type FaultProxy,
  forFile,
  type KeyState,
  type Matcher,
  ownConnections,
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
import { type Kind, PLAIN } from "../support/place/kinds.js";

export { type Watched, watch } from "../support/outcome.js";

export type ScriptName = "take" | "keep" | "end" | "pass" | "force" | "inspect" | "release";

interface ScriptLike {
  readonly name: string;
  readonly text: string;
  readonly sha1: string;
}

const scripts = Object.values(generated) as unknown as ScriptLike[];

/** Matches this step of any kind of lock, by EVAL or EVALSHA; with `word`, only if a key or argument contains it. */
export function script(name: ScriptName, word = ""): Matcher {
  const found = scripts.filter((candidate) => candidate.name?.endsWith(`/${name}`));
  if (found.length === 0) throw new Error(`no script is called ${name}`);
  const bodies = new Set(found.flatMap(({ text, sha1 }) => [text, sha1]));
  return ([verb = "", body = "", ...rest]) =>
    /^EVAL(SHA)?$/.test(verb) && bodies.has(body) && rest.some((each) => each.includes(word));
}

export type Topology = "standalone" | "cluster";
export type Version = 5 | 6;

export interface BedOptions {
  /** Default the plain lock. */
  readonly kind?: Kind;
  readonly topology?: Topology;
  readonly version?: Version;
  /** Options of the connection, or of those to the nodes. */
  readonly redis?: ClientOptions;
  /** The client's calls are {@link UNHURRIED} unless these options say otherwise. */
  readonly client?: LockClientOptions;
  /** Standalone only: the client's subscriber connection has a proxy of its own. */
  readonly split?: boolean;
}

/** One lock of one client behind a proxy of its own. */
export interface Bed extends AsyncDisposable {
  readonly kind: Kind;
  readonly name: string;
  readonly redis: UserRedis;
  /** The client's own connection for commands. */
  readonly own: UserRedis;
  readonly client: LockClient;
  readonly lock: Lock;
  /** A lock of the bed's kind, of this client, with the bed's name by default. */
  make(name?: string): Lock;
  /** A lock of this client that, in the hands of another owner, excludes the bed's lock. */
  rival(name?: string): Lock;
  /** The proxy in front of the server that has the lock. */
  readonly proxy: FaultProxy;
  /** The proxy of the subscriber connection; the same proxy unless the bed is split. */
  readonly subscribing: FaultProxy;
  /** The connections that the client has made for itself; filled only if the bed is split. */
  readonly subscribers: readonly Redis[];
  readonly observer: ScanClient | ScanCluster;
  /** The client's `lost` and `error` events. */
  readonly troubles: readonly [name: "lost" | "error", event: unknown][];
  /** All keys whose name contains the lock's name. */
  keys(): Promise<Record<string, KeyState>>;
  dispose(): Promise<void>;
}

let names = 0;

/** A lock name that no other test uses, and that is no part of another one's name. */
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
    // Load every script on every node, so that a late EVALSHA does not fail for a script that its node has never seen.
    for (const node of [stage.#server, ...(stage.#cluster?.nodes ?? [])]) {
      for (const { text } of scripts) if (text) await node?.call("SCRIPT", "LOAD", text);
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
      const subscriber = (overrides: object): Redis => {
        const made = new Redis({ ...all, ...overrides, port: subscribing.port });
        // Its options follow those of the connection that it is made of; what is set here stays.
        queueMicrotask(() => {
          made.options.port = subscribing.port;
        });
        subscribers.push(made);
        return made;
      };
      const duplicate = (overrides: object): Redis =>
        Object.assign(new Redis({ ...all, ...overrides }), { duplicate: subscriber });
      Object.assign(user, { duplicate });
    }
    const observer = this.server.connect(redis.db === undefined ? {} : { db: redis.db });
    const parts = { proxy, subscribing, subscribers, observer };
    return bedOf(freshName(), user, parts, options, async () => {
      observer.disconnect();
      await Promise.all([proxy.stop(), split && subscribing.stop()]);
    });
  }

  async #onCluster(options: BedOptions): Promise<Bed> {
    const { version = 6, redis = {} } = options;
    const proxies: ClusterProxy = await startClusterProxy(this.cluster);
    const all = { natMap: proxies.natMap, redisOptions: redis };
    const user = (version === 6
      ? new Cluster(proxies.startupNodes, all)
      : new Cluster5(proxies.startupNodes, all as object)) as unknown as UserRedis;
    const observer = this.cluster.connect();
    const name = freshName();
    const proxy = await proxies.proxyFor(name);
    const parts = { proxy, subscribing: proxy, subscribers: [], observer };
    return bedOf(name, user, parts, options, async () => {
      observer.disconnect();
      await proxies.stop();
    });
  }
}

function userRedis(version: Version, options: ClientOptions): UserRedis {
  return (version === 6 ? new Redis(options) : new Redis5(options as object)) as unknown as UserRedis;
}

async function bedOf(
  name: string,
  redis: UserRedis,
  parts: Pick<Bed, "proxy" | "subscribing" | "subscribers" | "observer">,
  options: BedOptions,
  end: () => Promise<void>,
): Promise<Bed> {
  redis.on("error", () => {});
  const { kind = PLAIN } = options;
  const made = ownConnections(redis);
  const client = new LockClient(redis, { ...UNHURRIED, ...options.client });
  const [own] = made as [UserRedis];
  const troubles: ["lost" | "error", unknown][] = [];
  client.on("lost", (event) => troubles.push(["lost", event]));
  client.on("error", (event) => troubles.push(["error", event]));
  // Repeated, because on a busy machine a client with a short time-out may fail at first.
  // UNSUPPORTED is an answer too: that of a user who may not do everything.
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
  const make: Bed["make"] = (lockName = name) => kind.make([client], lockName);
  return {
    kind,
    name,
    redis,
    own,
    client,
    lock: make(),
    make,
    rival: (lockName = name) => kind.rival.make([client], lockName),
    ...parts,
    troubles,
    keys: async () => Object.fromEntries(await allKeys(parts.observer, name)),
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

/** Milliseconds; far shorter than the leases and polls that tests take for "never". */
export const SOON: number = PATIENCE;

/** Milliseconds, longer than any test, so a waiter that only this time would wake fails. */
export const NEVER = 60_000;

/** Resolves with the result of the call; fails if the call takes long, or rejects. */
export async function soon<T>(watched: Watched<T>, timeout: number = SOON): Promise<T> {
  await until("the call is over", () => watched.state !== "pending", { timeout });
  return watched.promise;
}

/** Resolves with the error of the call; fails if the call takes long, or succeeds. */
export async function failsSoon(watched: Watched<unknown>, timeout: number = SOON): Promise<unknown> {
  await until("the call is over", () => watched.state !== "pending", { timeout });
  if (watched.state === "resolved") throw new Error(`expected a failure, got ${String(watched.value)}`);
  return watched.error;
}

/** The result of the call, which is repeated while it is UNAVAILABLE: a busy machine may exceed a short time-out. */
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

/** Resolves when the count was the same at three more looks: nothing is sent any more. */
export async function untilQuiet(count: () => number, every = 100): Promise<void> {
  let [before, looks] = [-1, 0];
  const isQuiet = (): boolean => {
    const now = count();
    looks = now === before ? looks + 1 : 0;
    before = now;
    return looks === 3;
  };
  await until("nothing is sent any more", isQuiet, { every });
}

/** Lets everything run that is ready. */
export async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Servers for the tests of one file. The file fails if a promise rejects without a handler. */
export function useStage(...topologies: readonly Topology[]): Promise<Stage> {
  failOnUnhandledRejections();
  return forFile(Stage.start(topologies));
}

/** For tests on every kind of lock: more of them run in parallel, because they wait most of the time. */
export function manyAtOnce(): void {
  vi.setConfig({ maxConcurrency: 8 });
}

/** Fails the file if a promise rejects without a handler. */
export function failOnUnhandledRejections(): void {
  const seen: unknown[] = [];
  const onRejection = (reason: unknown) => void seen.push(reason);
  process.on("unhandledRejection", onRejection);
  afterAll(async () => {
    await turn();
    process.off("unhandledRejection", onRejection);
    expect(seen).toEqual([]);
  });
}
