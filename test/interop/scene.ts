/**
 * One Redis, or one cluster, with clients of both sides. Without a Redisson each test is skipped with the reason.
 */
import type { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, inject } from "vitest";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import {
  hasShardedPubSub,
  isAtLeast,
  type RedisCluster,
  type RedisServer,
  startCluster,
  startRedis,
  UNHURRIED,
  until,
  type Watched,
} from "../support/index.js";
import { NEVER } from "./calls.js";
import { JavaClient, type JavaOptions, type JavaThread } from "./java.js";
import { type Driver, Jvm, SharedJvm } from "./jvm.js";
import { type Listeners, NodeParty, type Party, type Side } from "./party.js";
import type { Running } from "./shared.js";

/** Keys that say that a call or an owner is over, and that expire by themselves. */
const MARKER = /^(redisson_unlock_latch|holdfast_over|redisson_lock_token):/;

/** Describes `what` for each Redisson; `define` is called while tests are collected, and uses its scene inside them. */
export function withEachRedisson(what: string, define: (scene: Scene) => void): void {
  const all = inject("sharedRedisson");
  // If there is none at all, the reason is given once.
  const some = all.filter((each) => "classpath" in each);
  for (const each of some.length > 0 ? all : all.slice(0, 1)) withScene(what, new Scene(each), define);
}

/** The same for the newest Redisson alone. */
export function withRedisson(what: string, define: (scene: Scene) => void, topology?: "cluster"): void {
  for (const newest of inject("sharedRedisson").slice(0, 1))
    withScene(what, new Scene(newest, topology), define);
}

function withScene(what: string, scene: Scene, define: (scene: Scene) => void): void {
  describe(scene.missing === undefined ? `${what}, Redisson ${scene.version}` : what, () => {
    beforeAll(() => scene.open());
    afterAll(() => scene.close());
    beforeEach((context) => scene.missing === undefined || context.skip(scene.missing));
    define(scene);
  });
}

export interface PartyOptions {
  /** Default: the scene's Java client. */
  readonly java?: JavaClient;
  /** Options of a client of its own. By default only messages wake its waiters. */
  readonly node?: LockClientOptions;
}

export class Scene {
  /** The reason if there is no Redisson; then a test's own set-up must do nothing. */
  readonly missing: string | undefined;
  readonly version: string;
  readonly #running: Running;
  readonly #topology: "cluster" | undefined;
  readonly #clients = new Set<LockClient>();
  readonly #jvms = new Set<Jvm>();
  #servers: RedisServer | RedisCluster | undefined;
  #redis: Redis | undefined;
  #shared: SharedJvm | undefined;
  #java: JavaClient | undefined;
  #names = 0;
  #threads = 0;

  constructor(running: Running, topology?: "cluster") {
    this.#running = running;
    this.#topology = topology;
    this.version = running.version;
    this.missing = "missing" in running ? running.missing : undefined;
  }

  /** True if this Redisson has that version or a later one. */
  atLeast(version: string): boolean {
    return isAtLeast(this.version, version);
  }

  get server(): RedisServer {
    return this.nodes[0] as RedisServer;
  }

  get nodes(): readonly RedisServer[] {
    const servers = there(this.#servers);
    return "nodes" in servers ? servers.nodes : [servers];
  }

  /** A connection to look at the server, or at the cluster, past both sides. */
  get redis(): Redis {
    return there(this.#redis);
  }

  /** A name that was not used before. */
  name(shape: (unique: string) => string = (unique) => unique): string {
    return shape(`n${++this.#names}-${this.version}`);
  }

  /** A thread that was not used before. */
  thread(client: JavaClient = there(this.#java)): Promise<JavaThread> {
    return client.thread(`thread-${++this.#threads}`);
  }

  /** An owner that was not there before, in Node with a client of its own. */
  async party(side: Side, { java, node }: PartyOptions = {}): Promise<Party> {
    return side === "Java" ? this.thread(java) : this.node(node);
  }

  node(options?: LockClientOptions): NodeParty {
    return new NodeParty(this.newNode({ pollCap: NEVER, ...options }), () => this.listeners());
  }

  /** A client in Node; closed at the end. */
  newNode(options: LockClientOptions = {}): LockClient {
    const client = new LockClient(there(this.#servers).connect(), { ...UNHURRIED, ...options });
    this.#clients.add(client);
    return client;
  }

  /** Another client in Java, in the JVM that all files share or in a given one. */
  newJava(options: JavaOptions = {}, jvm: Driver = there(this.#shared)): Promise<JavaClient> {
    const urls = this.nodes.map(({ url }) => url);
    const where = this.#topology === "cluster" ? { nodes: urls } : { url: urls[0] as string };
    return JavaClient.connect(jvm, { ...where, ...options });
  }

  /** A JVM that a test may pause and kill; killed at the end. */
  newJvm(): Jvm {
    const jvm = new Jvm(this.#running);
    this.#jvms.add(jvm);
    return jvm;
  }

  /** The listeners of all channels; those of sharded pub/sub alone are in `only`. */
  async listeners(only: readonly ("" | "SHARD")[] = ["", "SHARD"]): Promise<Listeners> {
    const counts = new Map<string, number>();
    const kinds = (await hasShardedPubSub()) ? only : only.filter((kind) => kind === "");
    const count = async (node: RedisServer, kind: string): Promise<void> => {
      const channels = ((await node.call("PUBSUB", `${kind}CHANNELS`)) as unknown[]).map(String);
      if (channels.length === 0) return;
      const pairs = (await node.call("PUBSUB", `${kind}NUMSUB`, ...channels)) as unknown[];
      for (const [i, channel] of channels.entries())
        counts.set(channel, (counts.get(channel) ?? 0) + Number(pairs[2 * i + 1]));
    };
    await Promise.all(this.nodes.flatMap((node) => kinds.map((kind) => count(node, kind))));
    return counts;
  }

  /** Nobody has it, nothing of it is left but markers, and soon nobody listens. */
  async expectNothingLeft(name: string): Promise<void> {
    const isOf = (text: string) => text.includes(name);
    const keys = (await Promise.all(this.nodes.map((node) => node.call("KEYS", "*")))).flat().map(String);
    expect(keys.filter((key) => isOf(key) && !MARKER.test(key))).toEqual([]);
    await until(`nobody listens to ${name}`, async () => ![...(await this.listeners()).keys()].some(isOf));
  }

  async open(): Promise<void> {
    if ("missing" in this.#running) return;
    this.#shared = new SharedJvm(this.#running.port);
    this.#servers = await (this.#topology === "cluster" ? startCluster() : startRedis());
    const looker: Redis | Cluster = this.#servers.connect();
    this.#redis = looker as Redis;
    await looker.ping();
    this.#java = await this.newJava();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.close({ timeout: 0 })));
    await Promise.all([this.#shared?.close(), ...[...this.#jvms].map((jvm) => jvm.kill())]);
    await this.#servers?.stop();
  }
}

/** Resolves with the result of a call that is due; fails if it takes as long as a lease or a poll would. */
export async function soon<T>(call: Watched<T>): Promise<T> {
  await until("the call is over", () => call.state !== "pending");
  return call.promise;
}

function there<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("the scene is there inside tests only");
  return part;
}
