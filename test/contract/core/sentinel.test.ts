/** The core of the contract through Sentinel: servers with a password, and a database that is not the first one. */
import { expect, test } from "vitest";
import { fromNodeRedis } from "../../../src/entries/node-redis.js";
import { LockClient, type RedisConnection } from "../../../src/index.js";
import { failOnUnhandledRejections } from "../../faults/harness.js";
import { allKeys, forFile, nodeRedis, startSentinel, UNHURRIED, until } from "../../support/index.js";
import { CALM } from "../../topology/sentinel-haste.js";
import { coreRows, kept } from "./rows.js";

failOnUnhandledRejections();
// A long downAfter, so that a busy machine does not make the sentinels replace a healthy master.
const all = await forFile(startSentinel({ password: "se:cret", sentinelPassword: "watch", downAfter: CALM }));
const open = await forFile(startSentinel({ password: "se:cret", downAfter: CALM }));

function byNodeRedis(version: 5 | 6): RedisConnection {
  const client = nodeRedis(version).sentinel({
    name: open.name,
    sentinelRootNodes: open.sentinels.map(({ host, port }) => ({ host, port })),
    nodeClientOptions: { password: open.servers[0]?.password },
  });
  return fromNodeRedis(kept(client));
}

coreRows([
  { title: "ioredis", connect: () => all.connect({ db: 2 }) },
  { title: "redis 6", connect: () => byNodeRedis(6) },
  { title: "redis 5", connect: () => byNodeRedis(5) },
]);

test("the keys are in the client's database, on the master and on its replica", async () => {
  const client = new LockClient(all.connect({ db: 2 }), UNHURRIED);
  await client.ready();
  const hold = await client.getLock("order").lock();
  const [master, [replica]] = [await all.master(), await all.replicas()];
  const keysOf = async (db: number) => [...(await allKeys(master.connect({ db }), "order")).keys()];
  expect(await keysOf(2)).toEqual(["order"]);
  expect(await keysOf(0)).toEqual([]);
  const copy = replica?.connect({ db: 2, readOnly: true });
  await until("the replica has it", async () => (await copy?.hget("order", hold.ownerId)) === "1");
  await hold.unlock();
  await client.close();
});

test("a client that connects by itself takes the options for Sentinel", async () => {
  const client = LockClient.connect({ ...all.clientOptions, db: 2 }, UNHURRIED);
  const other = new LockClient(all.connect({ db: 2 }), UNHURRIED);
  const hold = await client.getLock("own connection").lock();
  expect(await other.getLock("own connection").isLocked()).toBe(true);
  await hold.unlock();
  await Promise.all([client, other].map((each) => each.close()));
});
