/** What the tests of RedLock share: masters that a test can harm, and parties that have a client for each of them. */
import { Redis } from "ioredis";
import { afterEach } from "vitest";
import { type Lock, LockClient, RedLock } from "../../src/index.js";
import { failOnUnhandledRejections, freshName, SOON } from "../faults/harness.js";
import {
  type FaultProxy,
  forFile,
  type RedisServer,
  redisCall,
  startProxy,
  startRedis,
  until,
} from "../support/index.js";

export { SOON } from "../faults/harness.js";
/** Milliseconds of a lease that outlives every test, and gives masters seconds for their answers. */
export const LONG = 600_000;

/**
 * Independent masters for the tests of one file. Masters that a test has stopped or killed are up again for the next
 * test. The file fails if a promise rejects without a handler.
 */
export function useMasters(count: number): Promise<readonly RedisServer[]> {
  failOnUnhandledRejections();
  const servers: RedisServer[] = [];
  afterEach(async () => {
    await Promise.all(
      servers.map(async (server) => {
        server.resume();
        await redisCall(server, ["PING"], 2_000).catch(() => server.restart());
      }),
    );
  });
  const starting = async () => {
    const server = await forFile(startRedis());
    servers.push(server);
    return server;
  };
  return Promise.all(Array.from({ length: count }, starting));
}

interface PartyOptions {
  readonly name?: string;
  /** Makes a member. */
  readonly make: (client: LockClient, name: string) => Lock;
}

/** A client for each master, behind a proxy of its own, and a RedLock over them. */
export class Party implements AsyncDisposable {
  readonly name: string;
  readonly redises: readonly Redis[];
  readonly lock: RedLock;
  readonly #proxies: readonly FaultProxy[];
  readonly #clients: readonly LockClient[];

  private constructor(proxies: readonly FaultProxy[], { name = freshName(), make }: PartyOptions) {
    this.name = name;
    this.#proxies = proxies;
    this.redises = proxies.map(({ host, port }) => new Redis({ host, port }).on("error", () => {}));
    // Long times, so that a busy machine answers in time.
    const settings = { watchdogTimeout: 1_000_000, commandTimeout: 10_000 };
    this.#clients = this.redises.map((each) => new LockClient(each, settings));
    this.lock = new RedLock(...this.#clients.map((client) => make(client, name)));
  }

  static async of(servers: readonly RedisServer[], options: PartyOptions): Promise<Party> {
    const party = new Party(await Promise.all(servers.map((server) => startProxy(server))), options);
    await patiently("all masters are there", () => Promise.all(party.#clients.map((each) => each.ready())));
    return party;
  }

  proxy(i: number): FaultProxy {
    return this.#proxies[i] as FaultProxy;
  }

  /** Takes the lock and gives it back, so that the extra work of a first call is done. */
  async warmUp(): Promise<void> {
    await patiently("it is warm", async () => (await this.lock.lock()).unlock());
    // From then on no master owes an answer.
    await Promise.all(this.redises.map((redis) => redis.ping()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const proxy of this.#proxies) proxy.restore();
    await Promise.all(this.#clients.map((client) => client.close({ timeout: 0 })));
    for (const redis of this.redises) redis.disconnect();
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
  }
}

/** Repeats the work until it succeeds, because on a busy machine a short time-out may be over first. */
async function patiently(what: string, work: () => Promise<unknown>): Promise<void> {
  await until(what, () => work().then(() => true), { timeout: 2 * SOON });
}
