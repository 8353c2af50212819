/** One owner with both sides of a read-write lock: upgrade, downgrade, and the loss of one side. In virtual time. */
import { expect } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import type { Hold } from "../../src/index.js";
import {
  deferred,
  failure,
  NAME,
  type SidesScene,
  STRANGER,
  sidesOf,
  testIn,
  testInScope,
  watch,
} from "./scene.js";

const open = (): SidesScene => sidesOf({ watchdogTimeout: 9_000 });
const test = testInScope(open);
const testOutside = testIn(open);

test("an owner that only reads and asks for the write side is refused at once, without a command", async (place) => {
  const { read, write, server } = place;
  const hold = await read.lock();
  server.took();
  const refusal = { code: "UPGRADE_REFUSED", lockName: NAME };
  expect(await failure(write.lock())).toMatchObject(refusal);
  expect(await failure(write.tryLock(1_000))).toMatchObject(refusal);
  expect(await failure(write.run(() => 1))).toMatchObject(refusal);
  expect(server.took()).toEqual([]);
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
  await write.run(() => 1);
});

test("a read hold that is over, or on its way back, refuses nobody the write side", async (place) => {
  const { read, write, server } = place;
  await read.lock({ lease: 1_000 });
  server.clock.moveTo(1_000);
  const hold = await write.lock();
  await hold.unlock();
  const other = await read.lock();
  const back = other.unlock();
  const next = await write.lock();
  await back;
  await next.unlock();
});

test("the writer takes the read side as well, and goes on as a reader without a gap", async (place) => {
  const { read, write, theirRead, theirWrite, server, settle } = place;
  const writing = await write.lock();
  const reading = await read.lock();
  expect(reading.ownerId).toBe(writing.ownerId);
  expect(await Promise.all([read.getHoldCount(), write.getHoldCount()])).toEqual([1, 1]);
  expect(read.currentHold()).toBe(reading);
  expect(write.currentHold()).toBe(writing);
  const [reader, writer] = [watch(theirRead.lock()), watch(theirWrite.lock())];
  await settle();
  expect([reader.outcome, writer.outcome]).toEqual(["pending", "pending"]);
  await writing.unlock();
  await settle();
  expect(server.hash()).toMatchObject({ mode: "read", [reading.ownerId]: "1" });
  expect(reading.isHeld).toBe(true);
  await reading.unlock();
  await settle();
  for (const { value } of [reader, writer]) {
    await settle();
    await value?.unlock();
  }
  await settle();
  await writer.value?.unlock();
});

test("an owner that has both sides may take the write side again", async ({ read, write }) => {
  const holds = [await write.lock(), await read.lock(), await write.lock()];
  expect(new Set(holds.map(({ ownerId }) => ownerId)).size).toBe(1);
  await write.unlock();
  await write.unlock();
  expect(holds.map(({ isHeld }) => isHeld)).toEqual([false, true, false]);
  expect(await failure(write.unlock())).toMatchObject({ code: "NOT_OWNER" });
  await read.unlock();
});

test("each side's deadline is its own, and the key lives until the later one", async (place) => {
  const { read, write, server, advance } = place;
  const writing = await write.lock({ lease: 10_000 });
  const reading = await read.lock({ lease: 20_000 });
  expect(server.ttl()).toBe(20_000);
  await advance(10_000);
  expect([writing.isHeld, reading.isHeld]).toEqual([false, true]);
  expect(server.hash()).toEqual({ mode: "read", [reading.ownerId]: "1" });
  expect(await failure(writing.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await reading.extend(5_000);
  expect(server.ttl()).toBe(5_000);
  await reading.unlock();
  const again = await write.lock({ lease: 5_000 });
  const other = await read.lock({ lease: 1_000 });
  await other.unlock();
  expect(server.ttl()).toBe(5_000);
  expect(server.hash()).toEqual({ mode: "write", [`${again.ownerId}:write`]: "1" });
  await again.unlock();
});

test("both sides are renewed together, each by its own command", async (place) => {
  const { read, write, a, advance, server } = place;
  a.listen("renewed");
  const holds = [await write.lock(), await read.lock(), await read.lock()];
  server.took();
  await advance(4_000);
  // The command names the key of each read hold: on a cluster a script may only touch keys that are named.
  const keys = [1, 2].map((i) => `{${NAME}}:${holds[1]?.ownerId}:rwlock_timeout:${i}`);
  const named = server.ran.find(({ name }) => name === "read/renew")?.args;
  expect(named?.filter((name) => name.includes("rwlock_timeout"))).toEqual(keys);
  expect(server.took().sort()).toEqual(["lock/renew", "read/renew"]);
  expect(a.heard("renewed")).toHaveLength(2);
  await advance(30_000);
  expect(holds.every(({ isHeld }) => isHeld)).toBe(true);
  await holds[0]?.unlock();
  await advance(30_000);
  expect(holds.map(({ isHeld }) => isHeld)).toEqual([false, true, true]);
  expect(server.hash()).toEqual({ mode: "read", [holds[1]?.ownerId as string]: "2" });
  await holds[1]?.unlock();
  await holds[2]?.unlock();
});

test("a side whose renewals fail is lost in time, though the other side is renewed", async (place) => {
  const { read, write, advance, server } = place;
  const holds = [await write.lock(), await read.lock()];
  server.instead = ({ name }) => {
    if (name === "read/renew") throw new ReplyError("ERR no");
    return undefined;
  };
  await advance(9_000);
  expect(holds.map(({ isHeld }) => isHeld)).toEqual([true, false]);
  await write.unlock();
});

/** Commands that remove something from the server, and whether the owner's write hold and read hold survive that. */
const GONE = [
  [
    "the write side",
    (own: string) => [
      ["HDEL", NAME, `${own}:write`],
      ["HSET", NAME, "mode", "read"],
    ],
    [false, true],
  ],
  ["the read side", (own: string) => [["HDEL", NAME, own]], [true, false]],
  ["both sides", () => [["DEL", NAME]], [false, false]],
] as const;

test.for(GONE)(
  "when %s is gone, the next renewals end what was on it, and nothing else",
  async ([, act, left], { read, write, a, advance, server, settle }) => {
    a.listen("lost");
    const holds = [await write.lock(), await read.lock()];
    for (const command of act(holds[0]?.ownerId as string)) server.execute(command as readonly string[]);
    await advance(4_000);
    expect(holds.map(({ isHeld }) => isHeld)).toEqual(left);
    for (const { reason } of a.heard("lost")) expect(reason).toBe("expired");
    for (const hold of holds) await watch(hold.unlock());
    await settle();
  },
);

test.for(GONE)("when %s is gone, an unlock of a hold there is told", async ([, act, left], place) => {
  const { read, write, server, settle } = place;
  const holds = [await write.lock(), await read.lock()];
  for (const command of act(holds[0]?.ownerId as string)) server.execute(command as readonly string[]);
  const unlocks = holds.map((hold) => watch(hold.unlock()));
  await settle();
  expect(unlocks.map(({ outcome }) => outcome)).toEqual(left.map((is) => (is ? undefined : "LOCK_LOST")));
});

test("a nested call on a side that is gone loses that side, and takes it anew where that is free", async (place) => {
  const { read, write, server } = place;
  const writing = await write.lock();
  const reading = await read.lock();
  server.execute(["HDEL", NAME, writing.ownerId]);
  const again = await read.lock();
  expect(reading.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  expect(writing.isHeld).toBe(true);
  expect(again.isHeld).toBe(true);
  expect(again.ownerId).toBe(writing.ownerId);
  await again.unlock();
  await writing.unlock();
});

test("a nested write whose side is gone leaves the read side, and is refused as an upgrade then", async (place) => {
  const { read, write, server } = place;
  const writing = await write.lock();
  const reading = await read.lock();
  server.execute(["HDEL", NAME, `${writing.ownerId}:write`]);
  server.execute(["HSET", NAME, "mode", "read"]);
  expect(await failure(write.lock())).toMatchObject({ code: "UPGRADE_REFUSED" });
  expect(writing.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  expect(reading.isHeld).toBe(true);
  await reading.unlock();
});

test("a loss on one side is `taken` by somebody else only if the owner has nothing on the other", async (place) => {
  const { read, write, server } = place;
  const reading = await read.lock();
  server.give({ mode: "write", [`${STRANGER}:write`]: "1" });
  expect(await failure(reading.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
  server.delete();
  const writing = await write.lock();
  const again = await read.lock();
  server.execute(["HDEL", NAME, `${writing.ownerId}:write`]);
  server.execute(["HSET", NAME, "mode", "read"]);
  expect(await failure(writing.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await again.unlock();
});

test("the release of a lost read hold, sent again after its owner reads anew, leaves nothing of the lost hold [B63]", async (place) => {
  const { read, theirRead, theirWrite, advance, settle, server } = place;
  // Another reader keeps the key, so the field of the lost reader stays too.
  const beside = await theirRead.lock();
  const lost = await read.lock({ lease: 5_000 });
  server.instead = ({ name }) => {
    if (name === "read/release") throw new ReplyError("NOREPLICAS Not enough good replicas to write.");
    return undefined;
  };
  await advance(5_100);
  expect(lost.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  server.instead = () => undefined;
  const again = await read.lock({ lease: 20_000 });
  await advance(1_000);
  expect(server.hash()).toEqual({ mode: "read", [beside.ownerId]: "1", [again.ownerId]: "1" });
  await beside.unlock();
  await again.unlock();
  await settle();
  const next = await theirWrite.tryLock();
  expect(next?.isHeld).toBe(true);
  await next?.unlock();
});

testOutside("readers share, each with a lease of its own, and a writer waits for the last", async (place) => {
  const { read, theirRead, theirWrite, advance, settle } = place;
  const mine = await read.lock({ lease: 20_000 });
  const theirs = await theirRead.lock({ lease: 5_000 });
  const writer = watch(theirWrite.lock());
  await settle();
  await mine.unlock();
  await settle();
  expect(writer.outcome).toBe("pending");
  await advance(5_000);
  expect(writer.state).toBe("resolved");
  expect(await read.tryLock()).toBeNull();
  await (writer.value as Hold).unlock();
  expect(await failure(theirs.unlock())).toMatchObject({ code: "LOCK_LOST" });
});

test("a nested read that finds both sides gone loses both", async ({ read, write, server }) => {
  const holds = [await write.lock(), await read.lock()];
  server.delete();
  const next = await read.lock();
  expect(holds.map(({ isHeld }) => isHeld)).toEqual([false, false]);
  expect(next.ownerId).not.toBe(holds[0]?.ownerId);
  await next.unlock();
});

test("an unlock of one side does not reach a hold, or a call, of the other", async (place) => {
  const { read, write, theirRead, settle } = place;
  const reading = await read.lock();
  expect((await failure(write.unlock())).message).toContain("nothing to unlock");
  await reading.unlock();
  const theirs = await theirRead.lock();
  const writing = watch(write.lock());
  await settle();
  expect((await failure(read.unlock())).message).toContain("nothing to unlock");
  expect((await failure(write.unlock())).message).toContain("still under way");
  await theirs.unlock();
  await settle();
  await writing.value?.unlock();
});

testOutside(
  "an unlock outside a scope knows of a bare hold of its own side alone",
  async ({ read, write }) => {
    const bare = await read.lock();
    expect((await failure(read.unlock())).message).toContain("by a bare lock()");
    expect((await failure(write.unlock())).message).not.toContain("by a bare lock()");
    await bare.unlock();
  },
);

test("a write waits for its turn, too, while a sibling that reads has given its hold back early", async (place) => {
  const { read, write, settle } = place;
  const end = deferred();
  const reader = read.run(async (hold) => {
    await hold.unlock();
    await end.promise;
  });
  const writer = watch(write.run(() => "written"));
  await settle();
  expect(writer.outcome).toBe("pending");
  end.resolve();
  await reader;
  await settle();
  expect(writer.outcome).toBe("written");
});

testOutside(
  "a writer that gives up first in line is followed by the next one of its process before any reader of another",
  async (place) => {
    const { write, theirRead, a, settle } = place;
    const reading = await theirRead.lock();
    const controller = new AbortController();
    const leaving = watch(write.lock({ signal: controller.signal }));
    await settle();
    const next = watch(write.lock());
    await settle();
    a.keep("requests");
    controller.abort();
    await settle();
    expect(leaving.state).toBe("rejected");
    while (a.onTheirWay > 0) {
      expect(await theirRead.tryLock()).toBeNull();
      await a.letOneGo();
    }
    await a.letGo();
    expect(await theirRead.tryLock()).toBeNull();
    await reading.unlock();
    await settle();
    await next.value?.unlock();
  },
);

testIn(() => sidesOf({ pollCap: 600_000 }))(
  "a writer that gives up before it could tell the server that it waits lets the readers of its process in [B64]",
  async (place) => {
    const { write, read, advance, settle, server } = place;
    const writing = await write.lock();
    const controller = new AbortController();
    const [next, third] = [watch(write.lock()), watch(write.lock())];
    const last = watch(write.lock({ signal: controller.signal }));
    const reader = watch(read.lock());
    await settle();
    // The first release lets others go first. Later hand-overs are so fast that the last writer is not advertised yet
    // when somebody deletes the lock.
    await writing.unlock();
    await advance(10);
    await next.value?.unlock();
    await settle();
    server.delete();
    expect([third.value?.isHeld, server.names().filter((name) => /writers/.test(name))]).toEqual([true, []]);
    expect([last.state, reader.state]).toEqual(["pending", "pending"]);
    controller.abort();
    await settle();
    expect(reader.value?.isHeld).toBe(true);
    await reader.value?.unlock();
  },
);
