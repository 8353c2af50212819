/**
 * The server in memory of `holdfast/testing` instead of a real one, for suites that are run by hand with
 * `HOLDFAST_TEST_CLIENT=memory`. It uses the machine's clock.
 */
import type { Redis } from "ioredis";
import { TestClock } from "../../src/entries/testing/clock.js";
import { COMMANDS } from "../../src/entries/testing/commands.js";
import { Link } from "../../src/entries/testing/link.js";
import { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import { MemoryServer } from "../../src/entries/testing/memory-server.js";
import type { RedisServer } from "./redis-server.js";
import type { RespValue } from "./resp.js";

class RunningClock extends TestClock {
  override mono(): number {
    return performance.now();
  }

  override wall(): number {
    return Date.now();
  }

  override after(ms: number, callback: () => void): () => void {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  }
}

/** The shorthands of ioredis that tests use, besides plain commands. */
const LIKE_IOREDIS: Readonly<Record<string, (redis: MemoryConnection) => (...args: never[]) => unknown>> = {
  hgetall: (redis) => async (key: string) => {
    const flat = (await redis.call("HGETALL", key)) as string[];
    return Object.fromEntries(flat.flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1]]] : [])));
  },
  hset:
    (redis) =>
    (key: string, ...fields: (string | number | object)[]) =>
      redis.call("HSET", key, ...fields.flatMap((each) => wordsOf(each))),
  keys: (redis) => (pattern: string) => allKeysOf(redis, pattern),
  del: (redis) => (keys: string | string[]) => redis.call("DEL", ...[keys].flat()),
  flushall: (redis) => async () => {
    for (const key of await allKeysOf(redis)) await redis.call("DEL", key);
  },
};

async function allKeysOf(redis: MemoryConnection, pattern = "*"): Promise<string[]> {
  const [, found] = (await redis.call("SCAN", 0, "MATCH", pattern, "COUNT", 1_000_000)) as [string, string[]];
  return found;
}

function wordsOf(field: string | number | object): (string | number)[] {
  return typeof field === "object" ? Object.entries(field).flat() : [field];
}

function likeIoredis(redis: MemoryConnection): Redis {
  const proxy = new Proxy(redis, {
    get(target, name: string) {
      const special = LIKE_IOREDIS[name];
      if (special) return special(target);
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value === "function") return value.bind(target);
      if (value !== undefined || !Object.hasOwn(COMMANDS, name)) return value;
      return (...args: (string | number)[]) => target.call(name, ...args);
    },
  });
  return proxy as unknown as Redis;
}

/** The part of a server that contract tests use. The rest has no counterpart in memory. */
export function memoryRedis(): RedisServer {
  const link = new Link(new MemoryServer(new RunningClock()));
  const connect = () => new MemoryConnection(link, {}, true);
  const server: Pick<RedisServer, "call" | "connect" | "stop"> = {
    call: (...command) => connect().call(...command) as Promise<RespValue>,
    connect: () => likeIoredis(connect()),
    async stop() {
      for (const connection of [...link.connections]) (connection as MemoryConnection).disconnect();
    },
  };
  return server as RedisServer;
}
