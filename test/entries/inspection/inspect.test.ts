/** `inspect`: what it reports of a name, from the keys on the server, in virtual time. */
import { expect, test } from "vitest";
import type { LockInfo } from "../../../src/index.js";
import { watch } from "../../support/place/index.js";
import { ALL, open } from "./helpers.js";

type Place = ReturnType<typeof open>;

const THEIRS = "b0e5b1a2-0000-4000-8000-000000000000:37";
/** What stands on the server, as far as it does not expire. */
const lasting = ({ server }: Place) => server.names().map((key) => [key, server.ttl(key)]);

test.each<[string, (place: Place) => unknown]>([
  ["that is free", () => {}],
  ["of a lock that was given back", async ({ client }) => (await client.getLock("a").lock()).unlock()],
  [
    "of a fencing lock that was given back, whose counter stays",
    async ({ client }) => (await client.getFencedLock("a").lock()).unlock(),
  ],
  ["of a semaphore", ({ client }) => client.getSemaphore("a").trySetPermits(3)],
  ["of a latch", ({ client }) => client.getCountDownLatch("a").trySetCount(3)],
  ["that another prefix has", async ({ with: by }) => by({ prefix: "b" }).client.getLock("a").lock()],
])("inspect gives null of a name %s, and leaves it as it is [§1 inspect]", async (_, make) => {
  const place = open();
  await make(place);
  const before = lasting(place);
  expect(await place.rivals.inspect("a")).toBeNull();
  expect(lasting(place)).toEqual(before);
});

// test/lua/other-data.test.ts has each kind of data.
test.each(["SET a paid", "HSET a user ann age 7"])(
  "inspect refuses a name of other data: %s",
  async (line) => {
    const place = open();
    place.call(line);
    const before = lasting(place);
    for (const options of [{}, ALL])
      await expect(place.client.inspect("a", options)).rejects.toMatchObject({
        code: "WRONG_DATA",
        lockName: "a",
      });
    expect(lasting(place)).toEqual(before);
  },
);

/** What `inspect` has to show, without what presence knows. */
type Shown = Omit<Partial<LockInfo>, "holders"> & {
  holders: { ownerId: string; count: number; ttl: number }[];
};

test.each<[string, (place: Place) => Promise<Shown> | Shown]>([
  [
    "a lock: its owner, how often it holds it, and how long",
    async ({ client }) => {
      const lock = client.getLock("a");
      const hold = await lock.lock({ lease: 60_000 });
      await lock.lock({ lease: 50_000, owner: hold });
      return { kind: "lock", ttl: 60_000, holders: [{ ownerId: hold.ownerId, count: 2, ttl: 60_000 }] };
    },
  ],
  [
    "a lock of Redisson's, without end by -1",
    ({ call }) => {
      call(`HSET a ${THEIRS} 3`);
      return { kind: "lock", ttl: -1, holders: [{ ownerId: THEIRS, count: 3, ttl: -1 }] };
    },
  ],
  [
    "a fair lock with a queue as fair, with the waiters in their order",
    async ({ client, call, party, settle }) => {
      const { ownerId } = await client.getFairLock("a").lock();
      const parties = [party(), party()];
      for (const i of [0, 1, 0]) {
        watch(parties[i]?.client.getFairLock("a").lock() as Promise<unknown>);
        await settle();
      }
      const waiters = call("LRANGE redisson_lock_queue:{a} 0 -1") as string[];
      const ids = [0, 1, 0].map((i) => expect.stringContaining(parties[i]?.client.id as string));
      expect(waiters).toEqual(ids);
      return { kind: "fair", waiters, ttl: 30_000, holders: [{ ownerId, count: 1, ttl: 30_000 }] };
    },
  ],
  [
    "the write side by the id of its owner, without what the hash adds to it",
    async ({ client }) => {
      const { ownerId } = await client.getReadWriteLock("a").writeLock().lock({ lease: 60_000 });
      expect(ownerId).not.toContain("write");
      const holders = [{ ownerId, count: 1, ttl: 60_000 }];
      return { kind: "readwrite", mode: "write", ttl: 60_000, holders };
    },
  ],
  [
    "each reader with its own count and time",
    async ({ client, rivals }) => {
      const [long, short] = [client, rivals].map((each) => each.getReadWriteLock("a").readLock());
      const one = await long?.lock({ lease: 600_000 });
      const two = await short?.lock({ lease: 60_000 });
      await short?.lock({ lease: 30_000, ...(two ? { owner: two } : {}) });
      const holders = [
        { ownerId: one?.ownerId ?? "", count: 1, ttl: 600_000 },
        { ownerId: two?.ownerId ?? "", count: 2, ttl: 60_000 },
      ];
      return { kind: "readwrite", mode: "read", ttl: 600_000, holders };
    },
  ],
  [
    "a writer that reads too as one holder",
    async ({ client }) => {
      const lock = client.getReadWriteLock("a");
      const write = await lock.writeLock().lock();
      const { ownerId } = await lock.readLock().lock({ owner: write });
      return { kind: "readwrite", mode: "write", holders: [{ ownerId, count: 2, ttl: 30_000 }] };
    },
  ],
  [
    "a reader that was the writer before in mode read",
    async ({ client }) => {
      const lock = client.getReadWriteLock("a");
      const write = await lock.writeLock().lock();
      const { ownerId } = await lock.readLock().lock({ owner: write });
      await write.unlock();
      return { kind: "readwrite", mode: "read", holders: [{ ownerId, count: 1, ttl: 30_000 }] };
    },
  ],
])("inspect shows %s [§1 inspect]", async (_, make) => {
  const place = open();
  const expected = await make(place);
  const holders = expected.holders.map((holder) => ({ ...holder, client: null, since: null }));
  const byCount = (a: { count: number }, b: { count: number }) => a.count - b.count;
  const info = await place.party().client.inspect("a");
  info?.holders.sort(byCount);
  expect(info).toEqual(expect.objectContaining({ name: "a", waiters: [], ...expected, holders }));
});
