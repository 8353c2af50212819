/** One cluster of three masters with clients of both sides, and their waiters. */
import type { Cluster } from "ioredis";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { type RedisCluster, startCluster } from "../support/index.js";
import { NEVER } from "../synchronizers/helpers.js";
import { namesOn } from "../topology/cluster-crew.js";
import { JavaClient, type JavaOptions, type JavaThread } from "./java.js";
import { SharedJvm } from "./jvm.js";
import { Parking } from "./parking.js";
import { there, withScene } from "./scene.js";
import type { Running } from "./shared.js";

/** The kind of pub/sub by which wake-ups travel. */
export type PubSub = "sharded" | "classic";

/** Like `withRedisson`, on a cluster. */
export function withRedissonOnCluster(what: string, define: (scene: ClusterScene) => void): void {
  withScene(what, (built) => new ClusterScene(built), define);
}

export class ClusterScene {
  readonly #built: Running;
  readonly #clients = new Set<LockClient>();
  readonly #javas: JavaClient[] = [];
  #cluster: RedisCluster | undefined;
  #redis: Cluster | undefined;
  #shared: SharedJvm | undefined;
  #lastThread = 0;

  constructor(built: Running) {
    this.#built = built;
  }

  /** True if there is no Redisson; then a test's own set-up must do nothing. */
  get isMissing(): boolean {
    return "missing" in this.#built;
  }

  get cluster(): RedisCluster {
    return there(this.#cluster);
  }

  /** A connection to look at the cluster, past both sides. */
  get redis(): Cluster {
    return there(this.#redis);
  }

  /** A client that hardly polls. It finds out by itself whether there is sharded pub/sub. */
  newNode(pubSub: PubSub = "sharded", options: LockClientOptions = {}): LockClient {
    const shardedPubSub = pubSub === "sharded" ? "auto" : false;
    const client = new LockClient(this.cluster.connect(), { pollCap: NEVER, shardedPubSub, ...options });
    this.#clients.add(client);
    return client;
  }

  /** The same in Java. */
  async newJava(pubSub: PubSub = "sharded", options: JavaOptions = {}): Promise<JavaClient> {
    const nodes = this.cluster.nodes.map(({ url }) => url);
    const sharded = pubSub === "sharded" ? "AUTO" : "OFF";
    const client = await JavaClient.connect(there(this.#shared), { nodes, sharded, ...options });
    this.#javas.push(client);
    return client;
  }

  /** A thread that was not used before. */
  thread(client: JavaClient): Promise<JavaThread> {
    return client.thread(`thread-${++this.#lastThread}`);
  }

  /** Fresh names, one in a slot of each master. */
  async names(title: string): Promise<string[]> {
    const found = await Promise.all(this.cluster.nodes.map((master) => namesOn(master, title, 1)));
    return found.flat();
  }

  /** The number of listeners of a channel with this name, for each kind of pub/sub. */
  async listeners(name: string): Promise<Record<PubSub, number>> {
    const counts = { sharded: 0, classic: 0 };
    const count = async (node: ReturnType<Cluster["nodes"]>[number], pubSub: PubSub, prefix: string) => {
      const channels = (await node.call("PUBSUB", `${prefix}CHANNELS`)) as string[];
      const own = channels.filter((channel) => channel.includes(name));
      if (own.length === 0) return;
      const pairs = (await node.call("PUBSUB", `${prefix}NUMSUB`, ...own)) as (string | number)[];
      for (let i = 1; i < pairs.length; i += 2) counts[pubSub] += Number(pairs[i]);
    };
    await Promise.all(
      this.redis
        .nodes("master")
        .flatMap((node) => [count(node, "sharded", "SHARD"), count(node, "classic", "")]),
    );
    return counts;
  }

  /** The waiters for this name. */
  waiters(name: string): Parking {
    const listeners = async () => {
      const { sharded, classic } = await this.listeners(name);
      return sharded + classic;
    };
    return new Parking(listeners, () => this.#settle(name));
  }

  /** Goes to Redis and back through all Java clients, and so through the JVM, in which the call must fall asleep. */
  async #settle(name: string): Promise<void> {
    const threads = await Promise.all(this.#javas.map((java) => java.thread("settle")));
    for (let i = 0; i < 3; i++) {
      await Promise.all(threads.map((thread) => thread.semaphore(`settle ${name}`).availablePermits()));
      await this.redis.exists(name);
    }
  }

  async open(): Promise<void> {
    if ("missing" in this.#built) return;
    this.#shared = new SharedJvm(this.#built.port);
    this.#cluster = await startCluster();
    this.#redis = this.#cluster.connect();
    await this.#redis.ping();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.close({ timeout: 0 })));
    await this.#shared?.close();
    await this.#cluster?.stop();
  }
}
