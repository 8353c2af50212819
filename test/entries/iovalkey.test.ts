/** iovalkey works without an adapter, on a server and on a cluster. */
import { Cluster, Redis } from "iovalkey";
import { test } from "vitest";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, forTest, startCluster, startRedis } from "../support/index.js";
import { expectLocks } from "./smoke.js";

failOnUnhandledRejections();
const [server, cluster] = await Promise.all([forFile(startRedis()), forFile(startCluster({ masters: 3 }))]);

test.each([
  ["a server", () => new Redis(server.port, server.host)],
  ["a cluster", () => new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })))],
])("a client of iovalkey for %s goes into a LockClient as it is", async (_, make) => {
  await expectLocks(() => forTest(make().on("error", () => {})));
});
