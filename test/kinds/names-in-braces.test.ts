/**
 * What the names `a` and `{a}` share: all keys and channels beside the lock's own key, because Redisson puts `a` in
 * braces there.
 */
import { expect, test } from "vitest";
import { useStage, watch } from "../faults/harness.js";
import { keysOf, NEVER, Scene } from "./helpers.js";

const stage = await useStage("standalone");

test("plain locks of both names are two, and their fencing tokens come from one counter", async () => {
  await using scene = await Scene.of(stage, {});
  const [bare, braced] = [scene.name, `{${scene.name}}`].map((name) => scene.client(0).getFencedLock(name));
  const one = await bare?.lock();
  const two = await braced?.lock();
  expect([one?.isHeld, two?.isHeld]).toEqual([true, true]);
  expect(two?.token).toBeGreaterThan(one?.token ?? 0n);
  expect(String(two?.token)).toBe((await scene.state(keysOf.counter(scene.name))).value);
  await one?.unlock();
  const three = await bare?.lock();
  expect(three?.token).toBeGreaterThan(two?.token ?? 0n);
  await Promise.all([two?.unlock(), three?.unlock()]);
});

test("fair locks of both names have one queue: a waiter of one goes before a later call for the other", async () => {
  await using scene = await Scene.of(stage, { pollCap: NEVER }, { pollCap: NEVER });
  const bare = (i: number) => scene.client(i).getFairLock(scene.name);
  const braced = scene.client(1).getFairLock(`{${scene.name}}`);
  const held = await bare(0).lock();
  const waiting = watch(bare(1).lock());
  await scene.untilQueued(1);
  expect(await braced.isLocked()).toBe(false);
  expect(await braced.tryLock()).toBeNull();
  await held.unlock();
  await (await waiting.promise).unlock();
  expect(await braced.tryLock()).not.toBeNull();
});

test("permits of both names are two numbers with one set of leases", async () => {
  await using scene = await Scene.of(stage, {});
  const [bare, braced] = [scene.name, `{${scene.name}}`].map((name) =>
    scene.client(0).getPermitExpirableSemaphore(name),
  );
  await bare?.trySetPermits(2);
  await braced?.trySetPermits(3);
  await bare?.acquire({ lease: 60_000 });
  expect(await bare?.availablePermits()).toBe(1);
  expect(await braced?.availablePermits()).toBe(3);
  expect(await braced?.acquiredPermits()).toBe(1);
});
