/** Slots that move and masters that change, as the other tests rely on them. */
import { expect, test } from "vitest";
import {
  closeMove,
  hardFailover,
  moveKeys,
  moveSlot,
  openMove,
  politeFailover,
  rejoin,
  slotOfKey,
  startCluster,
} from "./index.js";
import { forFile } from "./lasting.js";

const cluster = await forFile(startCluster({ masters: 3, replicas: 1 }));

test("a slot moves with its keys and their TTLs, and back", async () => {
  const client = cluster.connect();
  await client.mset("{a}1", "one", "{a}2", "two");
  await client.set("{a}3", "three", "PX", 60_000);
  const there = await moveSlot(cluster, "{a}1");
  expect(await cluster.masterFor("{a}1")).toBe(there.to);
  expect(there.slot).toBe(await slotOfKey(cluster, "{a}2"));
  expect(await there.from.call("CLUSTER", "COUNTKEYSINSLOT", there.slot)).toBe(0);
  expect(await client.mget("{a}1", "{a}2", "{a}3")).toEqual(["one", "two", "three"]);
  expect(await client.pttl("{a}3")).toBeGreaterThan(0);
  const back = await moveSlot(cluster, "{a}1", there.from);
  expect(back.to).toBe(there.from);
  expect(await client.mget("{a}1", "{a}2", "{a}3")).toEqual(["one", "two", "three"]);
});

test("between the steps some keys are here and some there", async () => {
  const client = cluster.connect();
  await client.mset("{b}1", "one", "{b}2", "two");
  const move = await openMove(cluster, "{b}1");
  await moveKeys(move, ["{b}1"]);
  expect(await move.from.call("CLUSTER", "COUNTKEYSINSLOT", move.slot)).toBe(1);
  expect(await move.to.call("CLUSTER", "COUNTKEYSINSLOT", move.slot)).toBe(1);
  expect(await client.get("{b}1")).toBe("one");
  expect(await client.get("{b}2")).toBe("two");
  await moveKeys(move);
  await closeMove(cluster, move);
  expect(await client.mget("{b}1", "{b}2")).toEqual(["one", "two"]);
});

test("a replica takes over when asked, and nothing is lost", async () => {
  const client = cluster.connect();
  await client.set("c", "kept");
  const { before, after } = await politeFailover(cluster, "c");
  expect(after).not.toBe(before);
  expect(await cluster.masters()).toContain(after);
  expect(await client.get("c")).toBe("kept");
});

test("a replica takes over from a dead master, which comes back as its replica", async () => {
  const client = cluster.connect();
  const master = await cluster.masterFor("d");
  await client.set("d", "kept");
  await master.call("WAIT", 1, 1_000);
  const { before, after, diedAt, knownAt } = await hardFailover(cluster, "d");
  expect(before).toBe(master);
  expect(knownAt).toBeGreaterThan(diedAt);
  expect(await client.get("d")).toBe("kept");
  await rejoin(cluster, before);
  expect(await cluster.masters()).not.toContain(before);
  expect((await politeFailover(cluster, "d")).before).toBe(after);
  expect(await cluster.masterFor("d")).toBe(before);
  expect(await client.get("d")).toBe("kept");
});
