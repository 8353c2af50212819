/**
 * A master, its replicas and three sentinels that watch them, all real. A test can kill the master, ask it to hand over,
 * or cut a replica off from it. Owns all the processes, and the clients it made.
 */
import type { Redis } from "ioredis";
import { type RedisServer, startRedis } from "./redis-server.js";
import { aboutMaster, startSentinelProcess } from "./sentinel-process.js";
import { type ClientOptions, TrackedClients } from "./tracked-clients.js";
import { until } from "./until.js";

export interface RedisSentinelOptions {
  /** Default 1. */
  readonly replicas?: number;
  /** The password of the servers. */
  readonly password?: string;
  /** The password of the sentinels. */
  readonly sentinelPassword?: string;
  /**
   * Milliseconds of silence after which the sentinels think a server is down. Default 500, for tests that want a
   * failover. A longer time avoids unwanted failovers on a busy machine.
   */
  readonly downAfter?: number;
  /** More arguments of each redis-server. */
  readonly args?: readonly string[];
}

const NAME = "holdfast";
const SENTINELS = 3;
const QUORUM = 2;
const FAILOVER_TIMEOUT = 3_000;
/** Long, because the sentinels may have to vote twice. */
const PATIENCE = { timeout: 20_000, every: 10 };

/** Starts all; resolves when the replicas have their copies and each sentinel knows all servers and other sentinels. */
export async function startSentinel(options: RedisSentinelOptions = {}): Promise<RedisSentinel> {
  const { replicas = 1, password, sentinelPassword, downAfter = 500, args = [] } = options;
  const auth = password === undefined ? { args } : { password, args };
  const master = await startRedis(auth);
  const servers = [master];
  const sentinels: RedisServer[] = [];
  const all = new RedisSentinel(servers, sentinels, sentinelPassword);
  try {
    for (let i = 0; i < replicas; i++) {
      // REPLICAOF is a command here, no argument, so that a restart of a promoted replica leaves it a master.
      const replica = await startRedis(auth);
      servers.push(replica);
      await replica.call("REPLICAOF", master.host, master.port);
    }
    for (let i = 0; i < SENTINELS; i++) {
      const watch = { name: NAME, master, quorum: QUORUM, downAfter, failoverTimeout: FAILOVER_TIMEOUT };
      sentinels.push(await startSentinelProcess({ ...watch, sentinelPassword }));
    }
    await all.inStep();
    return all;
  } catch (error) {
    await all.stop();
    throw error;
  }
}

export class RedisSentinel {
  /** The sentinels' name for the master. */
  readonly name: string = NAME;
  /** The first master, then its replicas. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  readonly #sentinelPassword: string | undefined;
  readonly #clients = new TrackedClients();

  /** Takes over servers and sentinels; `startSentinel` starts them. */
  constructor(
    servers: readonly RedisServer[],
    sentinels: readonly RedisServer[],
    sentinelPassword: string | undefined,
  ) {
    this.servers = servers;
    this.sentinels = sentinels;
    this.#sentinelPassword = sentinelPassword;
  }

  /** Options for `new Redis(…)` of any ioredis: they lead to the present master. */
  get clientOptions(): ClientOptions & { sentinels: { host: string; port: number }[]; name: string } {
    const password = this.servers[0]?.password;
    return {
      sentinels: this.sentinels.map(({ host, port }) => ({ host, port })),
      name: this.name,
      ...(password === undefined ? {} : { password }),
      ...(this.#sentinelPassword === undefined ? {} : { sentinelPassword: this.#sentinelPassword }),
    };
  }

  /** A client of the master, found by the sentinels, with an `error` listener; disconnected by `stop`. */
  connect(options: ClientOptions = {}): Redis {
    return this.#clients.redis({ ...this.clientOptions, ...options });
  }

  /** The present master, as most of the sentinels say. */
  async master(): Promise<RedisServer> {
    const said = await Promise.allSettled(this.sentinels.map((sentinel) => aboutMaster(sentinel, this.name)));
    const ports = said.flatMap((one) => (one.status === "fulfilled" ? [Number(one.value.get("port"))] : []));
    const server = this.servers.find(({ port }) => ports.filter((each) => each === port).length >= QUORUM);
    if (server === undefined)
      throw new Error(`the sentinels do not agree on the master: ${ports.join(", ")}`);
    return server;
  }

  /** All servers but the master. */
  async replicas(): Promise<RedisServer[]> {
    const master = await this.master();
    return this.servers.filter((server) => server !== master);
  }

  /** Asks for a failover and resolves with the new master, when it serves. No process is killed. */
  async failover(): Promise<RedisServer> {
    const before = await this.master();
    const [sentinel] = this.sentinels;
    await until("a failover may begin", () => sentinel?.call("SENTINEL", "FAILOVER", this.name), PATIENCE);
    return this.successor(before);
  }

  /** Sends SIGKILL to the master; resolves with the new master, when it serves. */
  async killMaster(): Promise<RedisServer> {
    const before = await this.master();
    await before.kill();
    return this.successor(before);
  }

  /** Resolves with the master that follows `before`, when it serves and all sentinels name it. */
  async successor(before: RedisServer): Promise<RedisServer> {
    const after = await until(
      `another master than ${before.port}`,
      async () => {
        const master = await this.master();
        return master !== before && master;
      },
      PATIENCE,
    );
    if (!after) throw new Error("no other master");
    await until(
      `${after.port} is master for everybody`,
      async () => {
        const role = (await after.info("replication")).get("role");
        const said = await Promise.all(this.sentinels.map((sentinel) => aboutMaster(sentinel, this.name)));
        return role === "master" && said.every((about) => about.get("port") === String(after.port));
      },
      PATIENCE,
    );
    return after;
  }

  /**
   * Stops a replica (SIGSTOP) and kills its link to the master, so that later writes of the master never reach it. A
   * replica that is only stopped would find them in its socket when it goes on. Ends by `resume()` of the server.
   */
  async cutOff(replica: RedisServer): Promise<void> {
    const master = await this.master();
    replica.pause();
    await master.call("CLIENT", "KILL", "TYPE", "replica");
  }

  /** Restarts a killed server as a replica of the present master; resolves when all know it again. */
  async revive(server: RedisServer): Promise<void> {
    const master = await this.master();
    await server.restart();
    // A sentinel that finds it first makes it a replica, too, and closes the connections to it.
    const follows = () => server.call("REPLICAOF", master.host, master.port);
    await until(`${server.port} follows the master`, follows, PATIENCE);
    await this.inStep();
  }

  /** Resolves when each replica is in step, and each sentinel knows all servers and sentinels and finds them healthy. */
  async inStep(): Promise<void> {
    await until("the replicas are in step", () => this.#replicasInStep(), PATIENCE);
    for (const sentinel of this.sentinels)
      await until(`sentinel ${sentinel.port} knows everybody`, () => this.#knowsAll(sentinel), PATIENCE);
  }

  async #replicasInStep(): Promise<boolean> {
    const master = await this.master().catch(() => this.servers[0]);
    const others = this.servers.filter((server) => server !== master);
    const links = await Promise.all(others.map((server) => server.info("replication")));
    return links.every(
      (link) => link.get("master_link_status") === "up" && link.get("master_port") === String(master?.port),
    );
  }

  async #knowsAll(sentinel: RedisServer): Promise<boolean> {
    const about = await aboutMaster(sentinel, this.name);
    const replicas = await sentinel.call("SENTINEL", "REPLICAS", this.name);
    const well = (Array.isArray(replicas) ? replicas : []).filter(
      (replica) => Array.isArray(replica) && isWell(replica.map(String)),
    );
    return (
      about.get("num-other-sentinels") === String(SENTINELS - 1) &&
      about.get("flags") === "master" &&
      well.length === this.servers.length - 1
    );
  }

  /** Disconnects the clients and stops every process. */
  async stop(): Promise<void> {
    this.#clients.disconnectAll();
    await Promise.all([...this.sentinels, ...this.servers].map((process) => process.stop()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** True for a replica that may be promoted. */
function isWell(fields: readonly string[]): boolean {
  const field = (name: string) => fields[fields.indexOf(name) + 1];
  return field("flags") === "slave" && field("master-link-status") === "ok";
}
