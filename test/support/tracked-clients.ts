/**
 * The ioredis clients that a server, a proxy or a cluster made for a test. Each has an `error` listener, because an
 * unhandled event must not end a test that kills servers; and each is disconnected at the end.
 */
import { Cluster, type ClusterNode, type ClusterOptions, Redis, type RedisOptions } from "ioredis";

/** Replies have ioredis' default shapes; a test of another `replyMapping` makes its own client. */
export type ClientOptions = Omit<RedisOptions, "replyMapping">;
export type ClusterClientOptions = Omit<ClusterOptions, "redisOptions"> & { redisOptions?: ClientOptions };

export class TrackedClients {
  readonly #clients = new Set<Redis | Cluster>();

  redis(options: ClientOptions): Redis {
    return this.#track(new Redis(options));
  }

  cluster(nodes: ClusterNode[], options: ClusterClientOptions): Cluster {
    return this.#track(new Cluster(nodes, options));
  }

  disconnectAll(): void {
    for (const client of this.#clients) client.disconnect();
    this.#clients.clear();
  }

  #track<T extends Redis | Cluster>(client: T): T {
    client.on("error", () => {});
    this.#clients.add(client);
    return client;
  }
}
