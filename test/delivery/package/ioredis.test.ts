/** Every minor version of ioredis that the peer dependency allows, from the oldest on. */
import { createRequire } from "node:module";
import type * as ioredis from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { LockClient } from "../../../src/index.js";
import { forFile, forTest, startCluster, startRedis } from "../../support/index.js";
import { installVersions, versionFolder } from "./versions/install.js";

const VERSIONS = ["5.4", "5.5", "5.6", "5.7", "5.8", "5.9", "5.10", "5.11", "6.0"].map((version) => ({
  version,
}));
/** Versions that pipeline all scripts of a tick together, whatever their keys: a cluster refuses such a pipeline. */
const MIXING = VERSIONS.slice(
  0,
  VERSIONS.findIndex(({ version }) => version === "5.11"),
);

const load = createRequire(import.meta.url);

const [server, cluster, missing] = await Promise.all([
  forFile(startRedis()),
  forFile(startCluster()),
  installVersions(),
]);

beforeEach(({ skip }) => {
  if (missing) skip(missing);
});

type Connect = (lib: typeof ioredis, options?: ioredis.ClusterOptions) => ioredis.Redis | ioredis.Cluster;
const standalone: Connect = ({ Redis }, options) => new Redis({ ...options, port: server.port } as object);
const onCluster: Connect = ({ Cluster }, options) => new Cluster(cluster.startupNodes, options as object);

function connect(version: string, make: Connect, options?: ioredis.ClusterOptions): LockClient {
  const redis = forTest(make(load(versionFolder(`ioredis${version}`)) as typeof ioredis, options));
  redis.on("error", () => {});
  // Polls are so rare that only a message can wake a waiter.
  return forTest(new LockClient(redis, { pollCap: 60_000 }));
}

/** Takes many locks at once, on all masters, and hands one lock over to a waiter. */
async function work(client: LockClient, rival: LockClient, name: string): Promise<void> {
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
}

describe.each(VERSIONS)("ioredis $version", ({ version }) => {
  test.each([
    ["standalone", standalone, false],
    ["standalone, with auto-pipelining", standalone, true],
    ["on a cluster", onCluster, false],
  ])("takes many locks, waits and is woken, %s", async (where, make, enableAutoPipelining) => {
    const client = connect(version, make, { enableAutoPipelining });
    await work(client, connect(version, make, { enableAutoPipelining }), `${version} ${where}`);
  });

  test("on a cluster with auto-pipelining, scripts left out of it [B35]", async () => {
    const options = { enableAutoPipelining: true, autoPipeliningIgnoredCommands: ["eval", "evalsha"] };
    await work(
      connect(version, onCluster, options),
      connect(version, onCluster, options),
      `${version} without`,
    );
  });
});

test.each(MIXING)(
  "ioredis $version, on a cluster with auto-pipelining: ready() says what to do",
  async ({ version }) => {
    const client = connect(version, onCluster, { enableAutoPipelining: true });
    await expect(client.ready()).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: expect.stringMatching(/ioredis 5\.11.*autoPipeliningIgnoredCommands: \["eval", "evalsha"\]/),
    });
  },
);

test.each(VERSIONS.slice(MIXING.length))(
  "ioredis $version takes many locks, waits and is woken, on a cluster with auto-pipelining",
  async ({ version }) => {
    const options = { enableAutoPipelining: true };
    await work(connect(version, onCluster, options), connect(version, onCluster, options), `${version} with`);
  },
);
