/** `query()`: exact for this process, and for other processes as far as they are known. */
import { expect, test } from "vitest";
import { createLockManager, type LockInfo } from "../../src/entries/web-locks.js";
import { until } from "../support/index.js";
import { hold, never, webLocksScene } from "./web-locks-scene.js";

const scene = webLocksScene();

const of = (infos: readonly LockInfo[], name: string) => infos.filter((info) => info.name === name);

test("nothing is held or pending where nobody has asked", async () => {
  await scene.server.call("FLUSHALL");
  expect(await scene.manager().query()).toEqual({ held: [], pending: [] });
});

test("requests show as soon as they are made, each with its name, mode and clientId", async () => {
  const client = scene.client();
  const manager = createLockManager(client);
  const [a, b] = [scene.name(), scene.name()];
  const requests = [
    manager.request(a, () => never),
    manager.request(a, { mode: "shared" }, () => never),
    manager.request(b, { mode: "shared" }, () => never),
    manager.request(b, { mode: "shared" }, () => never),
    manager.request(b, () => never),
    manager.request(a, () => never),
  ];
  const clientId = client.id;
  const { held, pending } = await manager.query();
  expect(of(held, a)).toEqual([{ name: a, mode: "exclusive", clientId }]);
  const shared = { name: b, mode: "shared", clientId };
  expect(of(held, b)).toEqual([shared, shared]);
  expect(of(pending, a).map(({ mode }) => mode)).toEqual(["shared", "exclusive"]);
  expect(of(pending, b)).toEqual([{ name: b, mode: "exclusive", clientId }]);
  const ended = Promise.allSettled(requests);
  await client.close({ timeout: 0 });
  await ended;
});

test("a lock is held until it is given back, and a request of ifAvailable is never pending", async () => {
  const manager = scene.manager();
  const name = scene.name();
  const first = await hold(manager, name);
  const tried = manager.request(name, { ifAvailable: true }, (lock) => lock);
  expect(of((await manager.query()).pending, name)).toEqual([]);
  expect(await tried).toBeNull();
  await first.release();
  expect(of((await manager.query()).held, name)).toEqual([]);
});

test("it waits until it is known of all requests before it whether they are granted at once", async () => {
  const client = scene.client();
  const manager = createLockManager(client);
  const name = scene.name();
  const first = await hold(scene.manager(), name, { mode: "shared" });
  // Each of these requests waits for the one before, because the first one may be granted.
  const refused = Array.from({ length: 30 }, () =>
    manager.request(name, { ifAvailable: true }, (lock) => lock),
  );
  const behind = hold(manager, name, { mode: "shared" });
  const { held, pending } = await manager.query();
  expect(of(held, name)).toContainEqual({ name, mode: "shared", clientId: client.id });
  expect(of(pending, name)).toEqual([]);
  expect(await Promise.all(refused)).toEqual(Array(30).fill(null));
  await (await behind).release();
  await first.release();
});

test("a dead-lock can be seen", async () => {
  const manager = scene.manager();
  const [a, b] = [scene.name(), scene.name()];
  const first = await hold(manager, a);
  const second = await hold(manager, b);
  const [one, two] = [new AbortController(), new AbortController()];
  const crossed = [
    manager.request(b, { signal: one.signal }, () => never),
    manager.request(a, { signal: two.signal }, () => never),
  ];
  const { held, pending } = await manager.query();
  expect(held.map(({ name }) => name)).toEqual([a, b]);
  expect(pending.map(({ name }) => name).sort()).toEqual([a, b]);
  one.abort();
  two.abort();
  await Promise.allSettled(crossed);
  await Promise.all([first.release(), second.release()]);
});

test("two managers of one client are one", async () => {
  const client = scene.client();
  const name = scene.name();
  const first = await hold(createLockManager(client), name);
  expect(of((await createLockManager(client).query()).held, name)).toHaveLength(1);
  await first.release();
});

test("another client's locks show at once, and what it waits for when its presence tells", async () => {
  const [mine, theirs] = [scene.client(), scene.client({ watchdogTimeout: 4_500 })];
  const [manager, other] = [createLockManager(mine), createLockManager(theirs)];
  const [a, b] = [scene.name(), scene.name()];
  const first = await hold(manager, a, { mode: "shared" });
  const second = await hold(other, b);
  const end = new AbortController();
  const { signal } = end;
  const waiting = [
    other.request(a, { signal }, () => never),
    other.request(b, { mode: "shared", signal }, () => never),
  ];
  const clientId = theirs.id;
  const told = await until("both are told", async () => {
    const seen = await manager.query();
    return seen.pending.length === 2 ? seen : undefined;
  });
  expect(of(told?.held ?? [], a)).toEqual([{ name: a, mode: "shared", clientId: mine.id }]);
  expect(of(told?.held ?? [], b)).toEqual([{ name: b, mode: "exclusive", clientId }]);
  expect(of(told?.pending ?? [], a)).toEqual([{ name: a, mode: "exclusive", clientId }]);
  expect(of(told?.pending ?? [], b)).toEqual([{ name: b, mode: "shared", clientId }]);
  // The process's own requests come first, and are not counted again from its presence.
  const seen = await other.query();
  expect(of(seen.held, b)).toHaveLength(1);
  expect(seen.pending).toHaveLength(2);
  expect(seen.held.map((info) => info.name)).toEqual([b, a]);
  end.abort();
  await Promise.allSettled(waiting);
  await Promise.all([first.release(), second.release()]);
});

test("other kinds of locks are none of it, and names are without the prefix", async () => {
  const [mine, theirs] = [scene.client({ prefix: "p" }), scene.client({ prefix: "p" })];
  const name = scene.name();
  const lock = await theirs.getLock(`${name}-lock`).lock();
  const reader = await theirs.getReadWriteLock(name).readLock().lock();
  const { held, pending } = await createLockManager(mine).query();
  expect(held).toEqual([{ name, mode: "shared", clientId: theirs.id }]);
  expect(pending).toEqual([]);
  await lock.unlock();
  await reader.unlock();
  const elsewhere = await hold(scene.manager(), name);
  expect((await createLockManager(mine).query()).held).toEqual([]);
  await elsewhere.release();
});
