/**
 * The place of a contract test: `eachKind` runs tests on every kind of lock. Each kind has a server of its own, so the
 * kinds run in parallel while the tests of one kind run one after the other. Each test has locks with fresh names.
 */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, test as plain, type TestAPI } from "vitest";
import { type Lock, LockClient, type LockClientOptions } from "../../src/index.js";
import {
  type CommandCounter,
  connectionLike,
  countCommands,
  type FaultProxy,
  isPresence,
  type RedisServer,
  startProxy,
  startRedis,
  UNHURRIED,
} from "../support/index.js";
import { warmUpAtLast } from "./helpers.js";
import { byName, KINDS, type Kind, WITH_GROUP } from "./kinds.js";
import { Wire } from "./wire.js";

/** The parts that the tests of one kind share in one file. */
class Scene {
  readonly server: RedisServer;
  readonly redis: Redis;
  readonly client: LockClient;
  readonly rivals: LockClient;
  #counter: CommandCounter | undefined;

  private constructor(server: RedisServer) {
    this.server = server;
    this.redis = server.connect();
    this.client = new LockClient(connectionLike(this.redis), UNHURRIED);
    this.rivals = new LockClient(connectionLike(server.connect()), UNHURRIED);
  }

  static async start(kind: Kind): Promise<Scene> {
    const scene = new Scene(await startRedis());
    for (const client of [scene.client, scene.rivals]) await warmUpAtLast(kind.make(client, "warm-up"));
    return scene;
  }

  /** A counter that counts from now on. */
  async counter(): Promise<CommandCounter> {
    this.#counter ??= await countCommands(this.server, { leavesOut: isPresence });
    await this.#counter.reset();
    return this.#counter;
  }

  async stop(): Promise<void> {
    this.#counter?.stop();
    for (const client of [this.client, this.rivals]) await client.close({ timeout: 0 });
    await this.server.stop();
  }
}

/** The fixtures that a test asks for by name. */
export interface Fixtures {
  readonly scene: Scene;
  /** The server of this kind. */
  readonly server: RedisServer;
  /** The connection of `client`, also used to look at the server. */
  readonly redis: Redis;
  readonly client: LockClient;
  /** Another client. */
  readonly rivals: LockClient;
  /** A name that no other test uses, and that is no part of another test's name. */
  readonly lockName: string;
  readonly lock: Lock;
  /** A second lock of the kind, and the name it was made with. */
  readonly other: Lock;
  readonly otherName: string;
  /** The lock that other owners cannot get while `lock` is held: the same lock, but for the read side the write side. */
  readonly excluded: Lock;
  /** The same by another client, so it excludes `lock` too. */
  readonly rival: Lock;
  /** The same lock as `lock`, by another client. */
  readonly twin: Lock;
  readonly wire: Wire;
  /** Makes a client behind a proxy. By default its calls are unhurried. */
  readonly through: (options?: LockClientOptions) => Promise<Through>;
  /** Counts the commands that the server gets, from the start of the test. */
  readonly counter: CommandCounter;
}

export interface Through {
  readonly proxy: FaultProxy;
  /** A client that has taken and given back a lock of the kind, so that the server knows its scripts. */
  readonly client: LockClient;
  /** The lock of the test, by that client. */
  readonly mine: Lock;
}

export type KindTest = TestAPI<Fixtures>;

let names = 0;

function testOf(kind: Kind, current: () => Scene): KindTest {
  return plain.extend<Fixtures>({
    scene: ({ task: _ }, use) => use(current()),
    server: ({ scene }, use) => use(scene.server),
    redis: ({ scene }, use) => use(scene.redis),
    client: ({ scene }, use) => use(scene.client),
    rivals: ({ scene }, use) => use(scene.rivals),
    lockName: ({ task: _ }, use) => use(`lock-${++names}.`),
    lock: ({ client, lockName }, use) => use(kind.make(client, lockName)),
    otherName: ({ task: _ }, use) => use(`other-${++names}.`),
    other: ({ client, otherName }, use) => use(kind.make(client, otherName)),
    excluded: ({ client, lockName }, use) => use(kind.rival.make(client, lockName)),
    rival: ({ rivals, lockName }, use) => use(kind.rival.make(rivals, lockName)),
    twin: ({ rivals, lockName }, use) => use(kind.make(rivals, lockName)),
    wire: ({ redis, lockName }, use) => use(new Wire(redis, kind, lockName)),
    through: async ({ server, lockName, otherName }, use) => {
      const opened: Through[] = [];
      await use(async (options = UNHURRIED) => {
        const proxy = await startProxy(server);
        const client = new LockClient(connectionLike(proxy.connect()), options);
        opened.push({ proxy, client, mine: kind.make(client, lockName) });
        await warmUpAtLast(kind.make(client, otherName));
        return opened.at(-1) as Through;
      });
      for (const { proxy, client } of opened) {
        proxy.restore();
        await client.close({ timeout: 0 });
        await proxy.stop();
      }
    },
    counter: async ({ scene }, use) => use(await scene.counter()),
  });
}

/** Defines tests once and runs them on every kind of lock, or on the given kinds. */
export function eachKind(
  title: string,
  define: (test: KindTest, kind: Kind) => void,
  kinds: readonly Kind[] = WITH_GROUP,
): void {
  describe.concurrent.each(byName(kinds))("%s", (_, kind) => {
    describe.sequential(title, () => {
      let scene: Scene;
      beforeAll(async () => {
        scene = await Scene.start(kind);
      });
      afterAll(() => scene?.stop());
      define(
        testOf(kind, () => scene),
        kind,
      );
    });
  });
}

/** Like {@link eachKind}, without the group, because its members have events and commands of their own. */
export function eachSingleKind(title: string, define: (test: KindTest, kind: Kind) => void): void {
  eachKind(title, define, KINDS);
}

export interface OwnClient {
  /** A connection that only this test uses. */
  readonly mine: Redis;
}

/** Tests with a `client` of their own, on `mine`, so that they may close it. */
export function withOwnClient(test: KindTest): TestAPI<Fixtures & OwnClient> {
  return test.extend<OwnClient & Pick<Fixtures, "client">>({
    mine: async ({ server }, use) => {
      const mine = server.connect();
      await use(mine);
      mine.disconnect();
    },
    client: async ({ mine }, use) => {
      const client = new LockClient(connectionLike(mine), UNHURRIED);
      await use(client);
      await client.close({ timeout: 0 });
    },
  });
}
