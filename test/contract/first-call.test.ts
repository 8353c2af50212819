/** The first call of a client asks the server some questions; abort, wait and close end it like any other call. */
import { beforeEach, describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import {
  allKeys,
  forFile,
  type RedisCluster,
  type RedisServer,
  SLACK,
  startCluster,
  startClusterProxy,
  startRedis,
  UNHURRIED,
  until,
} from "../support/index.js";
import { failure, watch } from "./helpers.js";
import { KINDS } from "./kinds.js";

const [server, cluster] = await Promise.all([forFile(startRedis()), forFile(startCluster())]);
const proxy = await forFile(startClusterProxy(cluster));
beforeEach(() => Promise.all([server, ...cluster.nodes].map((node) => node.call("FLUSHALL"))));

const topologies: [
  name: string,
  connect: () => ReturnType<RedisServer["connect"] | RedisCluster["connect"]>,
][] = [
  ["standalone", () => server.connect()],
  ["cluster", () => cluster.connect()],
];
const table = KINDS.flatMap((kind) =>
  topologies.map(([name, connect]) => [kind.name, name, kind, connect] as const),
);

describe.each(table)("%s, %s", (_kind, _topology, kind, connect) => {
  const nothingHeld = (redis: ReturnType<typeof connect>) =>
    until(
      "nothing is held",
      async () => ![...(await allKeys(redis)).values()].some(({ type }) => type === "hash"),
    );

  test("abort right after the call", async () => {
    const redis = connect();
    const client = new LockClient(redis);
    const controller = new AbortController();
    const { signal } = controller;
    const lock = kind.make(client, "a");
    const calls = [
      lock.lock({ signal }),
      lock.tryLock(0, 5_000, { signal }),
      lock.run(() => "never", { signal }),
    ];
    for (const call of calls) watch<unknown>(call);
    const reason = new Error("enough");
    controller.abort(reason);
    for (const call of calls) expect(await failure(call)).toBe(reason);
    await nothingHeld(redis);
    expect((await lock.lock({ wait: SLACK })).isHeld).toBe(true);
    await client.close({ timeout: 0 });
  });

  test("close right after the call", async () => {
    const redis = connect();
    const client = new LockClient(redis);
    const lock = kind.make(client, "a");
    const calls = [lock.lock(), lock.tryLock(), lock.run(() => "never")];
    for (const call of calls) watch<unknown>(call);
    await client.close({ timeout: 0 });
    for (const call of calls)
      expect(await failure(call)).toMatchObject({ code: "CLIENT_CLOSED", lockName: lock.name });
    // The user's connection stays open: when it is ready, it executes the commands that the client had sent.
    await until("the connection is ready", () => redis.status === "ready");
    await nothingHeld(redis);
  });

  test("close({ timeout: 0 }) has given back what it ended when it resolves", async () => {
    const redis = connect();
    const client = new LockClient(redis);
    const hold = await kind.make(client, "a").lock();
    await client.close({ timeout: 0 });
    expect(hold.signal.aborted).toBe(true);
    expect(await redis.exists("a")).toBe(0);
  });
});

test("wait bounds the first call too, when the cluster does not answer", async () => {
  const redis = proxy.connect();
  await until("the cluster is there", () => redis.status === "ready");
  const client = new LockClient(redis, UNHURRIED);
  for (const each of proxy.proxies.values()) each.blackhole();
  const began = performance.now();
  const error = await failure(client.getLock("a").lock({ wait: 200 }));
  expect(error).toMatchObject({ code: "UNAVAILABLE", lockName: "a" });
  expect(performance.now() - began).toBeLessThan(SLACK);
  const controller = new AbortController();
  const aborted = client.getLock("a").lock({ signal: controller.signal });
  watch(aborted);
  const reason = new Error("enough");
  controller.abort(reason);
  const since = performance.now();
  expect(await failure(aborted)).toBe(reason);
  expect(performance.now() - since).toBeLessThan(SLACK);
  for (const each of proxy.proxies.values()) each.restore();
  await client.close({ timeout: 0 });
});
