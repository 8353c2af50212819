/** Versions of ioredis that the peer dependency allows: the oldest and the newest of each major, and where something changes. */
import { createRequire } from "node:module";
import type * as ioredis from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { LockClient } from "../../../src/index.js";
import { forFile, forTest, startCluster, startRedis, UNHURRIED } from "../../support/index.js";
import { installVersions, versionFolder } from "./versions/install.js";

/** Before 5.11 all scripts of a tick are pipelined together, whatever their keys: a cluster refuses such a pipeline. */
const VERSIONS = ["5.4", "5.10", "5.11", "6.0"];

const load = createRequire(import.meta.url);
const [server, cluster, missing] = await Promise.all([
  forFile(startRedis()),
  forFile(startCluster()),
  installVersions(),
]);

beforeEach(({ skip }) => {
  if (missing) skip(missing);
});

type Options = Pick<ioredis.ClusterOptions, "enableAutoPipelining">;
type Where = "standalone" | "on a cluster";

function connect(version: string, where: Where, options: Options): LockClient {
  const { Cluster, Redis } = load(versionFolder(`ioredis${version}`)) as typeof ioredis;
  const made =
    where === "standalone"
      ? new Redis({ ...options, port: server.port } as object)
      : new Cluster(cluster.startupNodes, options as object);
  const redis = forTest(made);
  redis.on("error", () => {});
  // Polls are so rare that only a message can wake a waiter.
  return forTest(new LockClient(redis, { ...UNHURRIED, pollCap: 60_000 }));
}

const PIPELINED: Options = { enableAutoPipelining: true };
const WAYS: readonly (readonly [way: string, where: Where, options: Options])[] = [
  ["standalone", "standalone", {}],
  ["standalone with auto-pipelining", "standalone", PIPELINED],
  ["on a cluster", "on a cluster", {}],
  ["on a cluster with auto-pipelining [B35]", "on a cluster", PIPELINED],
];

for (const version of VERSIONS)
  for (const [way, where, options] of WAYS) {
    test(`ioredis ${version} ${way}: many locks are taken at once, and a waiter is woken`, async () => {
      const [client, rival] = [connect(version, where, options), connect(version, where, options)];
      const name = `${version} ${way}`;
      await client.ready();
      const locks = Array.from({ length: 50 }, (_, n) => client.getLock(`${name}:${n}`));
      const holds = await Promise.all(locks.map((lock) => lock.lock()));
      await Promise.all(holds.map((hold) => hold.unlock()));
      const hold = await client.getFairLock(name).lock();
      const waits = new Promise((resolve) => rival.once("waiting", resolve));
      const asked = rival.getFairLock(name).lock();
      await waits;
      await hold.unlock();
      await (await asked).unlock();
      expect(await client.getFairLock(name).isLocked()).toBe(false);
    });
  }
