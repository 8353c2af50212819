/** What a server in memory cannot show of `inspect`, `list` and presence: clusters, rights, long texts, other processes. */
import { expect, test } from "vitest";
import { LockClient } from "../../../src/index.js";
import { bundledWorker } from "../../faults/build-worker.js";
import {
  failure,
  forFile,
  forTest,
  startCluster,
  startRedis,
  startWorker,
  until,
} from "../../support/index.js";
import { ALL, listed, namesOf } from "./helpers.js";

const server = await forFile(startRedis());
const bundle = bundledWorker("../entries/inspection/presence-worker.ts");

test("of a text that is no number a few bytes are read, however long it is [B102]", async () => {
  const client = forTest(new LockClient(server.connect()));
  const redis = server.connect();
  await redis.mset("page", "x".repeat(5_000_000), "digits", "7".repeat(5_000_000), "number", 7);
  await redis.config("RESETSTAT");
  expect(await namesOf(client, ALL)).toEqual(["number"]);
  for (const name of ["page", "digits"])
    await expect(client.inspect(name, ALL)).rejects.toMatchObject({ code: "WRONG_DATA" });
  expect(await redis.info("commandstats")).not.toMatch(/^cmdstat_get:/m);
  await redis.flushall();
});

test("on a cluster the locks of every master are listed once, or none, and show whom presence knows [B301]", async () => {
  await using cluster = await startCluster({ masters: 3 });
  await using client = new LockClient(cluster.connect(), { prefix: "app", watchdogTimeout: 4_500 });
  const names = Array.from({ length: 30 }, (_, i) => `job-${i}`).sort();
  const masters = await Promise.all(names.map((name) => cluster.masterFor(`app:${name}`)));
  expect(new Set(masters).size).toBe(3);
  const holds = await Promise.all(names.map((name) => client.getLock(name).lock()));
  expect(await namesOf(client)).toEqual(names);
  const first = names.filter((name) => name.startsWith("job-1"));
  expect(await namesOf(client, { match: "job-1*", count: 5 })).toEqual(first);
  await using looking = new LockClient(cluster.connect(), { prefix: "app", presence: false });
  await until("all are told", async () => {
    const found = await listed(looking);
    return found.length === 30 && found.every(({ holders }) => holders[0]?.client?.id === client.id);
  });
  await Promise.all(holds.map((hold) => hold.unlock()));
  expect(await namesOf(client)).toEqual([]);
  await client.getFencedLock("{tag}:fenced").lock();
  await client.getReadWriteLock("both").readLock().lock();
  const permits = client.getPermitExpirableSemaphore("permits");
  await permits.trySetPermits(3);
  await permits.acquire({ lease: 60_000 });
  const kinds = (await listed(client, ALL)).map(({ name, kind, permits }) => [name, kind, permits]);
  expect(kinds).toEqual([
    ["both", "readwrite", undefined],
    ["permits", "permits", 2],
    ["{tag}:fenced", "fenced", undefined],
  ]);
  expect(await client.inspect("{tag}:fenced")).toMatchObject({ kind: "fenced" });
  // Without one of its masters no list is whole.
  await Promise.all(
    cluster.nodes.map((node) => node.call("CONFIG", "SET", "cluster-require-full-coverage", "no")),
  );
  await cluster.nodes[0]?.stop();
  for (let i = 0; i < 3; i++) expect(await failure(namesOf(client))).toMatchObject({ code: "UNAVAILABLE" });
});

test("where the user may not write the key, presence is off, told once, and locks are as ever", async () => {
  const user = "SETUSER narrow on >narrow +@all allchannels ~narrow* ~*{narrow*";
  await server.call("ACL", ...user.split(" "));
  const redis = server.connect({ username: "narrow", password: "narrow" });
  const client = forTest(new LockClient(redis, { watchdogTimeout: 3_600 }));
  const errors: unknown[] = [];
  client.on("error", (event) => errors.push(event));
  const hold = await client.getLock("narrow").lock();
  await until("it is told", () => errors.length > 0);
  await until("renewed", () => client.stats().renewals >= 3);
  expect(errors).toMatchObject([{ cause: { code: "UNSUPPORTED" } }]);
  const holders = [{ client: { id: client.id } }];
  expect(await client.inspect("narrow")).toMatchObject({ holders, waiting: [] });
  await hold.unlock();
});

test("a worker of a bundle is named, until it dies", async () => {
  await using worker = await startWorker(bundle());
  const client = forTest(new LockClient(server.connect()));
  const id = await worker.request<string>("hold", [server.url, "theirs", 1_500]);
  const named = await until("it is named", async () => {
    const { message } = await failure(client.getLock("theirs").lock({ wait: 2_500 }));
    return message.includes("(pid") ? message : undefined;
  });
  expect(named).toMatch(/held by a worker \(pid \d+\) for \d+ s; wait longer/);
  await worker.kill();
  const key = `holdfast_client:${id}`;
  await until("it is forgotten", async () => (await server.call("EXISTS", key)) === 0);
});
