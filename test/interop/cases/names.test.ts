/** From any name both sides make the same keys and channels. Only messages wake the waiters here. */
import { afterEach, describe, expect, test } from "vitest";
import type { LockClient } from "../../../src/index.js";
import { soon } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import type { JavaThread, LockKind } from "../java.js";
import { type Scene, withRedisson } from "../scene.js";
import { LOOK_AT_LATCH, parked } from "./waiting.js";

const NAMES = [
  "plain",
  "with space",
  "a:b:c",
  "{tag}rest",
  "pre{tag}",
  "x{a}y{b}",
  "open{brace",
  "{}",
  "ключ",
  "鍵🔑",
  "quote\"and'",
  "with%percent",
  "a/b\\c",
];
const LEASE = 40_000;

/** The calls of one side on a lock of some kind. */
interface Side {
  take(): Promise<unknown>;
  /** Resolves with false or null if the lock is refused. */
  tryOnce(): Promise<unknown>;
  giveBack(): Promise<unknown>;
  /** Whether its call sleeps until a message comes; see {@link JavaThread.isAsleep}. */
  isAsleep?(): Promise<boolean>;
}

const KINDS: Partial<
  Record<LockKind, (client: LockClient, name: string) => ReturnType<LockClient["getLock"]>>
> = {
  lock: (client, name) => client.getLock(name),
  fair: (client, name) => client.getFairLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  read: (client, name) => client.getReadWriteLock(name).readLock(),
  write: (client, name) => client.getReadWriteLock(name).writeLock(),
};

withRedisson("names", (scene) => {
  afterEach(() => scene.server.call("FLUSHALL"));

  describe.each(NAMES)("%j", (name) => {
    test.for([
      ["lock", "lock"],
      ["fair", "fair"],
      ["fenced", "fenced"],
      ["write", "read"],
      ["read", "write"],
    ] as const)("%s, then %s", async ([first, then]) => {
      const { thread, client } = await both(scene);
      await expectOneLock(scene, name, javaSide(thread, first, name), nodeSide(client, then, name));
      await expectOneLock(scene, name, nodeSide(client, first, name), javaSide(thread, then, name));
    });

    test("semaphore", async () => {
      const { thread, client } = await both(scene);
      const [java, node] = [thread.semaphore(name), client.getSemaphore(name)];
      await java.trySetPermits(1);
      expect(await node.trySetPermits(5)).toBe(false);
      const javaSide = {
        take: () => java.acquire(),
        tryOnce: () => java.tryAcquire(),
        giveBack: () => java.release(),
      };
      const nodeSide = {
        take: () => node.acquire(),
        tryOnce: () => node.tryAcquire(),
        giveBack: () => node.release(),
      };
      await expectOneLock(scene, name, javaSide, nodeSide);
      await expectOneLock(scene, name, nodeSide, javaSide);
    });

    test("permits with a lease", async () => {
      const { thread, client } = await both(scene);
      const [java, node] = [thread.permits(name), client.getPermitExpirableSemaphore(name)];
      await node.trySetPermits(1);
      expect(await java.trySetPermits(5)).toBe(false);
      const first = await java.acquire(LEASE);
      expect(await node.tryAcquire()).toBeNull();
      const second = await parked(scene, name, () => node.acquire({ lease: LEASE }));
      await node.release(first);
      const id = await soon(second);
      expect(await java.tryAcquire()).toBeNull();
      const waiter = (await scene.thread()).permits(name); // a thread is busy while it waits
      const third = await parked(scene, name, () => waiter.acquire(LEASE));
      await java.release(id);
      await node.release(await soon(third));
      expect(await node.availablePermits()).toBe(1);
    });

    test("latch", async () => {
      const { thread, client } = await both(scene);
      const [java, node] = [thread.latch(name), client.getCountDownLatch(name)];
      for (const [setter, counter] of [
        [java, node],
        [node, java],
      ] as const) {
        expect(await setter.trySetCount(1)).toBe(true);
        expect(await counter.trySetCount(2)).toBe(false);
        const waiter = (await scene.thread()).latch(name); // a thread is busy while it waits
        const inJava = await parked(scene, name, () => waiter.await(), { command: LOOK_AT_LATCH });
        const inNode = await parked(scene, name, () => node.await(), { command: LOOK_AT_LATCH });
        await counter.countDown();
        expect(await soon(inJava)).toBe(true);
        expect(await soon(inNode)).toBe(true);
      }
    });
  });
});

async function both(scene: Scene): Promise<{ thread: JavaThread; client: LockClient }> {
  return { thread: await scene.thread(), client: patient(scene) };
}

const clients = new WeakMap<Scene, LockClient>();

/** One client for all names, whose poll comes too late to wake its waiters. */
function patient(scene: Scene): LockClient {
  const client = clients.get(scene) ?? scene.newNode({ pollCap: NEVER });
  clients.set(scene, client);
  return client;
}

function javaSide(thread: JavaThread, kind: LockKind, name: string): Side {
  const lock = thread.lock(kind, name);
  return {
    take: () => lock.lock(LEASE),
    tryOnce: () => lock.tryLock(),
    giveBack: () => lock.unlock(),
    isAsleep: () => thread.isAsleep(),
  };
}

function nodeSide(client: LockClient, kind: LockKind, name: string): Side {
  const lock = KINDS[kind]?.(client, name);
  if (lock === undefined) throw new Error(`Node has no ${kind}`);
  let holder: Awaited<ReturnType<typeof lock.lock>> | undefined;
  return {
    take: async () => {
      holder = await lock.lock({ lease: LEASE });
    },
    tryOnce: () => lock.tryLock(),
    giveBack: async () => holder?.unlock(),
  };
}

/** The other side is refused a held lock, then waits for it, and is woken by the release. */
async function expectOneLock(scene: Scene, name: string, holder: Side, other: Side): Promise<void> {
  await holder.take();
  expect(await other.tryOnce()).toBeOneOf([false, null]);
  const waiting = await parked(scene, name, () => other.take());
  await until("it sleeps", async () => (await other.isAsleep?.()) ?? true);
  await holder.giveBack();
  await soon(waiting);
  expect(await holder.tryOnce()).toBeOneOf([false, null]);
  await other.giveBack();
}
