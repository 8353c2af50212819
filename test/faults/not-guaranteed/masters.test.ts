/**
 * Produces what is not guaranteed: a failover that lost a grant, and an old master that goes on behind a partition. Two
 * owners hold the lock until the first one asks. The tokens of the new master are higher, so a fence tells the two
 * apart.
 */
import { expect, test } from "vitest";
import { type FencedHold, LockClient } from "../../../src/index.js";
import { failure } from "../../contract/helpers.js";
import { startProxy, startRedis, startSentinel, UNHURRIED, until } from "../../support/index.js";
import { failOnUnhandledRejections } from "../harness.js";
import { Resource } from "./resource.js";

const OPTIONS = { ...UNHURRIED, watchdogTimeout: 600_000 };

failOnUnhandledRejections();

/**
 * Both owners believe that they hold the lock; only a resource that compares no tokens takes the first one's late
 * write.
 */
function bothWrite(first: FencedHold, second: FencedHold): void {
  expect([first.isHeld, second.isHeld]).toEqual([true, true]);
  expect(second.token).toBeGreaterThan(first.token);
  const resource = new Resource();
  expect(resource.write("second", second)).toBe(true);
  expect(resource.write("first", first)).toBe(false);
  expect([resource.unfenced, resource.fenced]).toEqual(["first", "second"]);
}

test("a failover loses a grant that its replica had not got: two hold the lock until the first one asks [F28]", async () => {
  await using all = await startSentinel();
  await using ours = new LockClient(all.connect(), OPTIONS);
  await using theirs = new LockClient(all.connect(), OPTIONS);
  await Promise.all([ours.ready(), theirs.ready()]);
  const [master, [replica]] = [await all.master(), await all.replicas()];
  if (replica === undefined) throw new Error("no replica");
  await all.cutOff(replica);
  // A hold without a lease is renewed, and told of its loss, as soon as its client is connected again.
  const first = await ours.getFencedLock("order").lock({ lease: 600_000 });
  await master.kill();
  replica.resume();
  await all.successor(master);

  const second = await theirs.getFencedLock("order").lock();
  bothWrite(first, second);
  expect(await failure(first.extend(600_000))).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
  expect([first.isHeld, first.signal.aborted, second.isHeld]).toEqual([false, true, true]);
  await second.unlock();
});

test("an old master serves on behind a partition: two hold the lock until it heals, and the first one is told [F29]", async () => {
  await using old = await startRedis();
  await using link = await startProxy(old, { record: false });
  await using successor = await startRedis({ replicaOf: link });
  await using inside = new LockClient(old.connect(), { ...OPTIONS, commandTimeout: 1_500 });
  await using outside = new LockClient(successor.connect(), OPTIONS);
  link.blackhole();
  await successor.call("REPLICAOF", "NO", "ONE");

  const first = await until("it is granted", () => inside.getFencedLock("order").lock());
  const second = await outside.getFencedLock("order").lock();
  bothWrite(first, second);
  // The partition heals: the old master becomes a replica of the new one, and gets its data.
  await old.call("REPLICAOF", successor.host, successor.port);
  await until("it follows", async () => (await old.info("replication")).get("master_link_status") === "up");
  const told = await failure(first.extend(600_000));
  expect(told).toMatchObject({ code: expect.stringMatching(/^(UNAVAILABLE|LOCK_LOST)$/) });
  expect(await outside.getFencedLock("order").isHeldByCurrentOwner({ owner: second })).toBe(true);
  await second.unlock();
});
