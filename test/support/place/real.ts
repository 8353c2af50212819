/** Clients on a redis-server of their own, for the rows that hold on a real server as in virtual time. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { LockClient, type LockClientOptions } from "../../../src/index.js";
import { UNHURRIED } from "../patience.js";
import { type RedisServer, startRedis } from "../redis-server.js";
import { until } from "../until.js";
import type { Kind } from "./kinds.js";
import { countIn, isTrace, type Place, STRANGER, type View } from "./place.js";

/** One server for all files of this process; it ends with the process. */
let started: Promise<RedisServer> | undefined;
let places = 0;

export interface RealPlace extends Place, AsyncDisposable {
  readonly server: RedisServer;
}

/** A place for a kind that needs one server. Calls are unhurried unless `options` say otherwise. */
export async function openReal(kind: Kind, options: LockClientOptions = {}): Promise<RealPlace> {
  if (kind.servers > 1) throw new Error(`a ${kind.name} needs more than one server`);
  started ??= startRedis();
  const server = await started;
  const redis = server.connect();
  const clients: LockClient[] = [];
  const connect = (more: LockClientOptions = {}) => {
    const client = new LockClient(server.connect(), { ...UNHURRIED, ...options, ...more });
    clients.push(client);
    return client;
  };
  const name = `row-${++places}.`;
  const [client, rivals] = [connect(), connect()];
  return {
    kind,
    server,
    client,
    rivals,
    lock: kind.make([client], name),
    other: kind.make([client], `other-${places}.`),
    excluded: kind.rival.make([client], name),
    rival: kind.rival.make([rivals], name),
    twin: kind.make([rivals], name),
    view: viewOf(kind, redis, name),
    with(more) {
      const further = connect(more);
      return { client: further, lock: kind.make([further], name) };
    },
    pass: (ms) => sleep(ms),
    eventually: (look) => until("it is so", look),
    async [Symbol.asyncDispose]() {
      for (const each of clients) await each.close({ timeout: 0 });
      redis.disconnect();
    },
  };
}

/** Deletes the lock and gives it to another owner in one step, so that no renewal comes in between. */
const SEIZE = `
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`;

function viewOf(kind: Kind, redis: Redis, name: string): View {
  const keys = async () => (await redis.keys(`*${name}*`)).filter((key) => !isTrace(key)).sort();
  return {
    name,
    call: (command = "", ...args) => redis.call(command, ...args),
    hash: () => redis.hgetall(name),
    ttl: () => redis.pttl(name),
    keys,
    count: async () => countIn(await redis.hgetall(name)),
    async wipe() {
      const found = await keys();
      if (found.length > 0) await redis.del(found);
    },
    async seize(ms = 60_000) {
      const theirs = kind.rival.fields(STRANGER, 1);
      await redis.eval(SEIZE, 1, name, String(ms), ...Object.entries(theirs).flat());
      return theirs;
    },
  };
}

/** The lock is free, and leaves nothing but traces that expire. */
export async function expectFree({ view }: Place): Promise<void> {
  await until("the lock is free", async () => (await view.keys()).length === 0);
}
