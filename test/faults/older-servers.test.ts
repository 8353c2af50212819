/**
 * Servers before Redis 7 know neither `#!lua` nor SPUBLISH. A client takes the older form when a server refuses such a
 * script; a switch for tests makes it do so on any server. test/contract/core has what works then.
 */
import type { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import {
  type CommandCounter,
  countCommands,
  forTest,
  ownConnections,
  type RedisServer,
  startRedis,
} from "../support/index.js";

function connect(redis: Redis | Cluster, options: LockClientOptions = {}): LockClient {
  return forTest(new LockClient(redis, { ...options, [INTERNALS]: { legacyServer: true } } as never));
}

/** The commands that were sent to these servers from here on. */
class Wire {
  readonly #counters: readonly CommandCounter[];

  private constructor(counters: readonly CommandCounter[]) {
    this.#counters = counters;
  }

  static async tap(servers: readonly RedisServer[]): Promise<Wire> {
    return new Wire(await Promise.all(servers.map((server) => countCommands(server))));
  }

  async sent(): Promise<string[][]> {
    await Promise.all(this.#counters.map((counter) => counter.settle()));
    return this.#counters.flatMap((counter) => counter.all());
  }

  /** Scripts were sent, and no command or line that an old server does not know. */
  async expectOld(): Promise<void> {
    const words = (await this.sent()).flat();
    expect(words).toContain("PUBLISH");
    for (const word of words) {
      expect(word).not.toMatch(/^#!/);
      expect(word).not.toMatch(/^(SPUBLISH|SSUBSCRIBE|SUNSUBSCRIBE|SHARDNUMSUB)$/i);
    }
  }

  stop(): void {
    for (const counter of this.#counters) counter.stop();
  }
}

describe("a single server", () => {
  let master: RedisServer;
  let replica: RedisServer;
  beforeAll(async () => {
    master = await startRedis();
    replica = await startRedis({ replicaOf: master });
  });
  afterAll(async () => {
    await replica?.stop();
    await master?.stop();
  });

  test("a client that is told to take it sends no command or line that an old server does not know", async () => {
    const wire = await Wire.tap([master]);
    const client = connect(master.connect(), { replicas: 1, replicasTimeout: 10_000, shardedPubSub: true });
    await client.ready();
    await client.getLock("job").run(() => {});
    await wire.expectOld();
    wire.stop();
  });

  describe("that refuses #!lua", () => {
    /** A connection to a server that takes the `#!lua` line as Redis 6.2 does: for a syntax error. */
    function old(): Redis {
      const redis = master.connect();
      ownConnections(redis, (own) => {
        const send = own.eval.bind(own) as (...words: unknown[]) => Promise<unknown>;
        const refusing = (lua: string, ...rest: unknown[]) => send(lua.replace(/^#!lua/, " #!lua"), ...rest);
        own.eval = refusing as typeof own.eval;
      });
      return redis;
    }

    test("gets the other text at once, and from then on", async () => {
      const client = forTest(new LockClient(old()));
      const wire = await Wire.tap([master]);
      const isModern = (words: readonly string[]) => words.some((word) => word.includes("#!lua"));
      // Not by `run`, which would not report a failed release.
      const holds = await Promise.all(["a", "b", "c"].map((name) => client.getLock(name).lock()));
      await Promise.all(holds.map((hold) => hold.unlock()));
      expect(await master.call("EXISTS", "a", "b", "c")).toBe(0);
      const refused = (await wire.sent()).filter(isModern).length;
      expect(refused).toBeGreaterThan(0);
      expect(refused).toBeLessThanOrEqual(3); // the calls that were under way at the same time
      const lock = client.getLock("a");
      const hold = await lock.lock();
      expect(await lock.forceUnlock()).toBe(true);
      await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
      await (await lock.lock()).unlock();
      expect(await lock.isLocked()).toBe(false);
      expect((await wire.sent()).filter(isModern)).toHaveLength(refused);
      wire.stop();
    });

    test("a grant with a WAIT goes through as well", async () => {
      const client = forTest(new LockClient(old(), { replicas: 1 }));
      const hold = await client.getLock("waited").lock();
      await hold.unlock();
      expect(await master.call("EXISTS", "waited")).toBe(0);
    });

    test.each([
      ["refused in both texts", "#", true],
      ["wrong in another way", "retrun 1", false],
    ])("a script that is %s is not sent without end", async (_, broken, tried) => {
      const redis = master.connect();
      const texts: string[] = [];
      ownConnections(redis, (own) => {
        const send = own.eval.bind(own) as (...words: unknown[]) => Promise<unknown>;
        const breaking = (lua: string, ...rest: unknown[]) => {
          if (!lua.includes("tombstoneTtl")) return send(lua, ...rest);
          texts.push(lua);
          return send(broken, ...rest);
        };
        own.eval = breaking as typeof own.eval;
      });
      const client = forTest(new LockClient(redis, { commandTimeout: 2_000 }));
      const hold = await client.getLock(`broken ${tried}`).lock();
      await expect(hold.unlock()).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(texts[0]).toMatch(/^#!lua/);
      expect(texts.some((lua) => !lua.startsWith("#!lua"))).toBe(tried);
      expect(texts.length).toBeLessThan(20);
    });
  });
});
