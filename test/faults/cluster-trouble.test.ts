/** What a call says that got no answer on a cluster: the trouble of its own master, and none that is long over. */
import { expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { failure, forFile, forTest, startCluster, startClusterProxy, until } from "../support/index.js";

const cluster = await forFile(startCluster({ masters: 3 }));

test("the trouble of a node that has answered since is not the cause of another node's silence [B255]", async () => {
  await using proxies = await startClusterProxy(cluster);
  const client = forTest(new LockClient(proxies.connect(), { commandTimeout: 1_000, presence: false }));
  const [once, now] = ["{a}", "{b}"].map((name) => client.getLock(name)) as [
    ReturnType<LockClient["getLock"]>,
    ReturnType<LockClient["getLock"]>,
  ];
  const [first, second] = [await proxies.proxyFor("{a}"), await proxies.proxyFor("{b}")];
  expect(first).not.toBe(second);
  await Promise.all([once, now].map((lock) => lock.run(() => {})));

  first.refuse();
  const refused = await failure(once.lock());
  expect(refused).toMatchObject({ code: "UNAVAILABLE" });
  first.restore();
  await until("it answers again", () => once.run(() => true).catch(() => false));

  second.blackhole();
  const silent = await failure(now.lock());
  expect(silent).toMatchObject({ code: "UNAVAILABLE" });
  expect(String((silent as Error).cause)).not.toContain(`:${first.port}`);
  second.restore();
});
