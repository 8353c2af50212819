import { Cluster as Cluster5 } from "ioredis5";
import { beforeEach, expect, test } from "vitest";
import { allKeys, keyState, named, startCluster, startClusterProxy, until } from "./index.js";
import { forFile } from "./lasting.js";

const cluster = await forFile(startCluster({ masters: 3, replicas: 1 }));
const proxies = await forFile(startClusterProxy(cluster));
beforeEach(() => Promise.all(cluster.nodes.slice(0, 3).map((node) => node.call("FLUSHALL"))));

test("keys are routed to their masters, which masterFor names", async () => {
  const client = cluster.connect();
  const keys = Array.from({ length: 30 }, (_, i) => `key:${i}`);
  await Promise.all(keys.map((key) => client.set(key, key)));
  const masters = new Set<number>();
  for (const key of keys) {
    const master = await cluster.masterFor(key);
    masters.add(master.port);
    expect(await master.call("GET", key)).toBe(key);
  }
  expect(masters.size).toBe(3);
  expect([...(await allKeys(client)).keys()]).toEqual([...keys].sort());
  expect(await keyState(client, "key:1")).toEqual({ type: "string", value: "key:1", ttl: -1 });
});

const patient = { maxRedirections: 1_000, retryDelayOnMoved: 10 };

test.each([
  ["ioredis 6", () => proxies.connect()],
  // Until it is connected again it asks other nodes, which send it back: so often that a busy machine takes longer.
  ["ioredis 5", () => new Cluster5(proxies.startupNodes, { ...patient, natMap: proxies.natMap })],
])("%s goes through the proxies, and counts twice when a reply is lost", async (_, connect) => {
  const client = connect();
  client.on("error", () => {});
  const proxy = await proxies.proxyFor("h");
  const fault = proxy.cutReplyOf(named("HINCRBY"));
  expect(await client.hincrby("h", "f", 1)).toBe(2);
  expect(fault.hits).toBe(1);
  expect(await (await cluster.masterFor("h")).call("HGET", "h", "f")).toBe("2");
  client.disconnect();
});

test("a replica takes over from a killed master", async () => {
  const before = await cluster.masterFor("k");
  await before.call("SET", "k", "v");
  await before.call("WAIT", 1, 1_000);
  await cluster.makeHasty();
  await before.kill();
  const after = await until(
    "another master is named",
    async () => {
      const others = cluster.nodes.filter((node) => node !== before);
      const master = await cluster.masterFor("k");
      return others.includes(master) && master;
    },
    { timeout: 15_000 },
  );
  expect(after && (await after.call("GET", "k"))).toBe("v");
});
