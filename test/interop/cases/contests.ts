/** What a hand-over needs of each kind: one side closes it, and the other side waits until it is opened. */
import type { Lock, LockClient } from "../../../src/index.js";
import type { JavaThread, LockKind } from "../java.js";

type End = () => Promise<unknown>;

/** The actions of one Node client or one Java thread on one name. */
export interface Party {
  /** Resolves when no other party can enter, with the function that opens it again. */
  shut(): Promise<End>;
  /** Enters at once, and leaves; false if it cannot enter, and then it leaves nothing behind. */
  enters(): Promise<boolean>;
  /** Waits until it can enter. Resolves with the function that leaves again. */
  waits(): Promise<End>;
}

export interface Contest {
  readonly kind: string;
  node(client: LockClient, name: string): Party;
  java(thread: JavaThread, name: string): Party;
}

const nothing: End = async () => {};

/** Locks that exclude each other; for a read-write lock the two sides, in either order. */
function locks(
  kind: string,
  [shuts, waits]: [LockKind, LockKind],
  node: (client: LockClient, name: string) => [shuts: Lock, waits: Lock],
): Contest {
  return {
    kind,
    node: (client, name) => {
      const [shutting, waiting] = node(client, name);
      const take = async (lock: Lock) => {
        const hold = await lock.lock();
        return () => hold.unlock();
      };
      return {
        shut: () => take(shutting),
        enters: async () => (await waiting.tryLock()) !== null,
        waits: () => take(waiting),
      };
    },
    java: (thread, name) => {
      const [shutting, waiting] = [thread.lock(shuts, name), thread.lock(waits, name)];
      const take = async (lock: typeof shutting) => {
        await lock.lock();
        return () => lock.unlock();
      };
      return {
        shut: () => take(shutting),
        enters: () => waiting.tryLock(),
        waits: () => take(waiting),
      };
    },
  };
}

interface Permits<P> {
  trySetPermits(permits: number): Promise<boolean>;
  acquire(): Promise<P>;
}

/** A semaphore with one permit. */
function permits<P>(
  semaphore: Permits<P>,
  enters: () => Promise<boolean>,
  release: (permit: P) => Promise<unknown>,
): Party {
  const waits = async () => {
    const permit = await semaphore.acquire();
    return () => release(permit);
  };
  const shut = async () => {
    await semaphore.trySetPermits(1);
    return waits();
  };
  return { shut, enters, waits };
}

interface Latch {
  trySetCount(count: number): Promise<boolean>;
  countDown(): Promise<unknown>;
  await(): Promise<boolean>;
  getCount(): Promise<number>;
}

function latch(gate: Latch): Party {
  return {
    shut: async () => {
      await gate.trySetCount(1);
      return () => gate.countDown();
    },
    enters: async () => (await gate.getCount()) === 0,
    waits: async () => {
      await gate.await();
      return nothing;
    },
  };
}

export const CONTESTS: readonly Contest[] = [
  locks("lock", ["lock", "lock"], (client, name) => [client.getLock(name), client.getLock(name)]),
  locks("fair", ["fair", "fair"], (client, name) => [client.getFairLock(name), client.getFairLock(name)]),
  locks("fenced", ["fenced", "fenced"], (client, name) => [
    client.getFencedLock(name),
    client.getFencedLock(name),
  ]),
  locks("write before read", ["write", "read"], (client, name) => {
    const both = client.getReadWriteLock(name);
    return [both.writeLock(), both.readLock()];
  }),
  locks("read before write", ["read", "write"], (client, name) => {
    const both = client.getReadWriteLock(name);
    return [both.readLock(), both.writeLock()];
  }),
  {
    kind: "semaphore",
    node: (client, name) => {
      const each = client.getSemaphore(name);
      return permits(
        each,
        () => each.tryAcquire(),
        () => each.release(),
      );
    },
    java: (thread, name) => {
      const each = thread.semaphore(name);
      return permits(
        each,
        () => each.tryAcquire(),
        () => each.release(),
      );
    },
  },
  {
    kind: "permits",
    node: (client, name) => {
      const each = client.getPermitExpirableSemaphore(name);
      return permits(
        each,
        async () => (await each.tryAcquire()) !== null,
        (id) => each.release(id),
      );
    },
    java: (thread, name) => {
      const each = thread.permits(name);
      return permits(
        each,
        async () => (await each.tryAcquire()) !== null,
        (id) => each.release(id),
      );
    },
  },
  {
    kind: "latch",
    node: (client, name) => latch(client.getCountDownLatch(name)),
    java: (thread, name) => latch(thread.latch(name)),
  },
];
