/** What the tests of node-redis share: the versions, and clients that end with their test or file. */
import * as redis6 from "redis";
import * as redis5 from "redis5";
import { afterAll, expect } from "vitest";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { LockClient, type LockClientOptions, type RedisConnection } from "../../src/index.js";
import { forTest, type NodeRedis, nodeRedis, type TestClient, UNHURRIED } from "../support/index.js";

/** By default version 5 speaks RESP2, and version 6 RESP3. */
export const VERSIONS: [name: string, redis: NodeRedis][] = [
  ["redis 5", nodeRedis(5)],
  ["redis 6", nodeRedis(6)],
];

/** The clients of a file, destroyed at its end. */
export class Clients {
  readonly #all: TestClient[] = [];

  constructor() {
    afterAll(() => {
      for (const client of this.#all) destroy(client);
    });
  }

  add<T extends TestClient>(client: TestClient): T {
    this.#all.push(client);
    return client as T;
  }
}

function destroy(client: TestClient): void {
  if (!client.isOpen) return;
  // The `destroy` of a sentinel's client returns a promise.
  void Promise.resolve(client.destroy()).catch(() => {});
}

/** Times so long that only a message can wake a waiter in time. */
export const FAR: LockClientOptions = { ...UNHURRIED, pollCap: 600_000, watchdogTimeout: 60_000 };

/** Two clients of the library, each on a connection of its own. */
export function twoClients(
  connect: () => RedisConnection,
  options: LockClientOptions = FAR,
): [LockClient, LockClient] {
  const make = () => forTest(new LockClient(connect(), options));
  return [make(), make()];
}

/**
 * The first call connects a client that is not connected. It leaves a client alone that its user is connecting. The
 * client stays open when the LockClient closes. One that was closed stays so, and locks go on without it.
 */
export async function expectLeftToItsUser(make: () => TestClient): Promise<void> {
  const [client, second] = [make(), make()];
  for (const isOpen of [false, true]) {
    const locks = new LockClient(fromNodeRedis(client), UNHURRIED);
    expect(client.isOpen).toBe(isOpen);
    await locks.getLock("first").run(() => {});
    await locks.close();
    expect(client.isOpen).toBe(true);
  }
  const locks = new LockClient(fromNodeRedis(second), UNHURRIED);
  const connecting = second.connect();
  await locks.getLock("waited for").run(() => {});
  await connecting;
  await second.close();
  await locks.getLock("closed").run(() => {});
  expect(second.isOpen).toBe(false);
  await locks.close();
}

/**
 * Never called: the compiler checks that the types of both packages fit.
 * @public to it
 */
export const typed = (): RedisConnection[] => [
  fromNodeRedis(redis5.createClient()),
  fromNodeRedis(redis5.createClient({ RESP: 3, modules: {} })),
  fromNodeRedis(redis5.createCluster({ rootNodes: [] })),
  fromNodeRedis(redis5.createSentinel({ name: "main", sentinelRootNodes: [] })),
  fromNodeRedis(redis6.createClient()),
  fromNodeRedis(redis6.createClient({ RESP: 2 })),
  fromNodeRedis(redis6.createCluster({ rootNodes: [] })),
  fromNodeRedis(redis6.createSentinel({ name: "main", sentinelRootNodes: [] })),
];
