/** The clients of one test on a cluster, their events, and the masters of their locks. */
import type { Cluster } from "ioredis";
import { type Hold, type Lock, LockClient, type LockClientOptions } from "../../src/index.js";
import { slotOf } from "../../src/redis/slots.js";
import { recordEvents, type SeenEvent, warmUpAtLast } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  forFile,
  isSharded,
  type RedisCluster,
  type RedisServer,
  startCluster,
  until,
} from "../support/index.js";
import { type Kind, PLAIN } from "../support/place/kinds.js";

export type Sharded = Exclude<LockClientOptions["shardedPubSub"], undefined>;

export const SHARDED: readonly Sharded[] = ["auto", true, false];

/** Milliseconds, long enough for a busy machine. */
export const SOON = 15_000;

/** Milliseconds in which a node answers that stands still for a while; for dead nodes no call waits longer. */
const ANSWERED = 6_000;

/** Three masters and their replicas for the tests of one file, in which no promise may reject without a handler. */
export function useReplicatedCluster(): Promise<RedisCluster> {
  failOnUnhandledRejections();
  return forFile(startCluster({ masters: 3, replicas: 1 }));
}

let names = 0;

export class Member {
  readonly client: LockClient;
  readonly redis: Cluster;
  readonly events: SeenEvent[];

  constructor(redis: Cluster, options: LockClientOptions) {
    this.redis = redis;
    this.client = new LockClient(redis, options);
    this.events = recordEvents(this.client);
  }

  /** The client's events of one lock. */
  told(name: SeenEvent["name"], lockName: string): SeenEvent[] {
    return this.events.filter((event) => event.name === name && event.payload.lockName === lockName);
  }

  /** Resolves after that many more "renewed" events of the lock; the first renewal may have been sent before. */
  async renews(lockName: string, times: number, timeout = 10_000): Promise<void> {
    const enough = this.told("renewed", lockName).length + times;
    const renewed = () => this.told("renewed", lockName).length >= enough;
    await until(`${lockName} is renewed`, renewed, { timeout });
  }
}

export class Crew implements AsyncDisposable {
  readonly #cluster: RedisCluster;
  readonly #members: Member[] = [];

  constructor(cluster: RedisCluster) {
    this.#cluster = cluster;
  }

  /** Adds a client that has reached every master. */
  async join(options: LockClientOptions = {}): Promise<Member> {
    const member = new Member(this.#cluster.connect(), { commandTimeout: ANSWERED, ...options });
    this.#members.push(member);
    for (const master of await this.#cluster.masters()) {
      const [name = ""] = await namesOn(master, "warm-up", 1);
      await warmUpAtLast(PLAIN.make([member.client], name));
    }
    return member;
  }

  /** Resolves when all clients are closed; fails if that takes longer than calls may take. */
  async close(): Promise<void> {
    let closed = false;
    const all = this.#members.splice(0).map(async ({ client, redis }) => {
      await client.close({ timeout: 0 });
      redis.disconnect();
    });
    const done = Promise.all(all).then(() => {
      closed = true;
    });
    await until("all clients are closed", () => closed, { timeout: 10_000 });
    await done;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Fresh names of locks on this master, which itself says that it has their slots. */
export async function namesOn(master: RedisServer, title: string, count: number): Promise<string[]> {
  const ranges = await master.call("CLUSTER", "SLOTS");
  const own = (Array.isArray(ranges) ? ranges : []).flatMap((range) => {
    if (!Array.isArray(range) || !Array.isArray(range[2]) || range[2][1] !== master.port) return [];
    return [{ first: Number(range[0]), last: Number(range[1]) }];
  });
  if (own.length === 0) throw new Error(`${master.port} has no slots`);
  const found: string[] = [];
  while (found.length < count) {
    const name = `${title} ${++names}.`;
    const slot = slotOf(name);
    if (own.some(({ first, last }) => first <= slot && slot <= last)) found.push(name);
  }
  return found;
}

/** A lock of each of these kinds on this master. */
export async function locksOn(
  master: RedisServer,
  kinds: readonly Kind[],
): Promise<[kind: Kind, name: string][]> {
  return Promise.all(
    kinds.map(async (kind): Promise<[Kind, string]> => {
      const [name = ""] = await namesOn(master, kind.name, 1);
      return [kind, name];
    }),
  );
}

/** A waiting call, its hold, and the moment of its grant. */
export interface Waiting {
  readonly lockName: string;
  readonly hold: Promise<Hold>;
  grantedAt: number | undefined;
}

export function waitFor(lock: Lock): Waiting {
  const waiting: Waiting = { lockName: lock.name, hold: lock.lock(), grantedAt: undefined };
  waiting.hold.then(
    () => {
      waiting.grantedAt = performance.now();
    },
    () => {
      // The user of `hold` sees the error.
    },
  );
  return waiting;
}

/** Resolves when each of these locks has a listener for its release. */
export async function untilListening(
  cluster: RedisCluster,
  lockNames: readonly string[],
  sharded: Sharded,
): Promise<void> {
  const command = (await isSharded(sharded)) ? "SHARDCHANNELS" : "CHANNELS";
  await until("all listen", async () => {
    const lists = await Promise.all(cluster.nodes.map((node) => node.call("PUBSUB", command, "*")));
    const channels = lists.flatMap((list) => (Array.isArray(list) ? list.map(String) : []));
    return lockNames.every((name) => channels.some((channel) => channel.includes(`{${name}}`)));
  });
}
