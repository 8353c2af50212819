/** `query()`: exact for this process, and for other processes as far as they are known. */
import { expect, test } from "vitest";
import { createLockManager, type LockInfo } from "../../src/entries/web-locks.js";
import { until } from "../support/index.js";
import { never, newName, webLocksScene } from "./web-locks-scene.js";

const { party } = await webLocksScene();

const of = (infos: readonly LockInfo[], name: string) => infos.filter((info) => info.name === name);

test("requests show as soon as they are made, each with its name, mode and clientId", async () => {
  const { client, manager, name: a } = party();
  const b = newName();
  const requests = [
    manager.request(a, () => never),
    manager.request(a, { mode: "shared" }, () => never),
    manager.request(b, { mode: "shared" }, () => never),
    manager.request(b, { mode: "shared" }, () => never),
    manager.request(b, () => never),
    manager.request(a, () => never),
  ];
  const clientId = client.id;
  const { held, pending } = await createLockManager(client).query();
  expect(of(held, a)).toEqual([{ name: a, mode: "exclusive", clientId }]);
  const shared = { name: b, mode: "shared", clientId };
  expect(of(held, b)).toEqual([shared, shared]);
  expect(of(pending, a).map(({ mode }) => mode)).toEqual(["shared", "exclusive"]);
  expect(of(pending, b)).toEqual([{ name: b, mode: "exclusive", clientId }]);
  const ended = Promise.allSettled(requests);
  await client.close({ timeout: 0 });
  await ended;
});

test("query waits until all requests before it are known to be granted at once or not", async () => {
  const { hold, isFree, modes, name } = party();
  const first = await party(name).hold({ mode: "shared" });
  // Each of these requests waits for the one before, because the first one may be granted.
  const refused = Array.from({ length: 30 }, () => isFree());
  const behind = hold({ mode: "shared" });
  expect(await modes()).toEqual(["ss", ""]);
  expect(await Promise.all(refused)).toEqual(Array(30).fill(false));
  await (await behind).release();
  await first.release();
});

test("another client's locks show at once, and what it waits for when its presence tells", async () => {
  const mine = party();
  const theirs = party(newName(), { watchdogTimeout: 4_500 });
  const [a, b] = [mine.name, theirs.name];
  const first = await mine.hold({ mode: "shared" });
  const second = await theirs.hold();
  const controller = new AbortController();
  const { signal } = controller;
  const waiting = [
    theirs.manager.request(a, { signal }, () => never),
    theirs.request({ mode: "shared", signal }, () => never),
  ];
  const clientId = theirs.client.id;
  const { held, pending } = await until("both are told", async () => {
    const seen = await mine.manager.query();
    return seen.pending.length === 2 ? seen : undefined;
  }).then((seen) => seen ?? expect.unreachable());
  expect(of(held, a)).toEqual([{ name: a, mode: "shared", clientId: mine.client.id }]);
  expect(of(held, b)).toEqual([{ name: b, mode: "exclusive", clientId }]);
  expect(of(pending, a)).toEqual([{ name: a, mode: "exclusive", clientId }]);
  expect(of(pending, b)).toEqual([{ name: b, mode: "shared", clientId }]);
  // The process's own requests come first, and are not counted again from its presence.
  const seen = await theirs.manager.query();
  expect([seen.held.map(({ name }) => name), seen.pending.length]).toEqual([[b, a], 2]);
  controller.abort();
  await Promise.allSettled(waiting);
  await Promise.all([first.release(), second.release()]);
});

test("other kinds of locks do not show, and names are without the prefix", async () => {
  const [mine, theirs] = [party(newName(), { prefix: "p" }), party(newName(), { prefix: "p" })];
  const { name } = theirs;
  await theirs.client.getLock(`${name}-lock`).lock();
  const reader = await theirs.client.getReadWriteLock(name).readLock().lock();
  expect(await mine.manager.query()).toEqual({
    held: [{ name, mode: "shared", clientId: theirs.client.id }],
    pending: [],
  });
  await reader.unlock();
  await party(name).hold();
  expect((await mine.manager.query()).held).toEqual([]);
});
