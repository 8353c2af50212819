/** A MultiLock when servers and connections fail: a call that is not granted leaves nothing, a waiting call goes on. */
import { describe, expect, test } from "vitest";
import { LockClient, MultiLock } from "../../src/index.js";
import { KINDS } from "../contract/kinds.js";
import { failsSoon, script, soon, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { Hall, NEVER, useStages } from "./helpers.js";

const stages = await useStages();

/** Milliseconds: more than a busy machine needs for an answer, and the longest wait for an answer that never comes. */
const TIME = 3_000;
const impatient = { commandTimeout: TIME };

async function open(): Promise<{ hall: Hall; multi: MultiLock } & AsyncDisposable> {
  const hall = await Hall.of(stages, impatient, { ...impatient, server: 1 }, {}, { server: 1 });
  const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"));
  return { hall, multi, [Symbol.asyncDispose]: () => hall[Symbol.asyncDispose]() };
}

const clientOf = (word: string): 0 | 1 => (word === "b" ? 1 : 0);

describe.concurrent("an error half-way", () => {
  test.for(["a", "b", "c"])("%s holds other data: it is left alone, and nothing is held", async (word) => {
    await using it = await open();
    const { hall, multi } = it;
    const redis = hall.redis(clientOf(word));
    await redis.set(hall.name(word), "data");
    const wrong = { code: "WRONG_DATA", lockName: hall.name(word) };
    await expect(multi.lock()).rejects.toMatchObject(wrong);
    await expect(multi.tryLock(2_000)).rejects.toMatchObject(wrong);
    await expect(multi.run(() => {})).rejects.toMatchObject(wrong);
    expect(await hall.held()).toEqual([word]);
    expect(await redis.get(hall.name(word))).toBe("data");
    await redis.del(hall.name(word));
    await multi.run(() => {});
    await hall.expectNothingLeft();
  });

  test("one's grant is not acknowledged by its replicas", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    // The server has no replica.
    await using strict = new LockClient(hall.bed(1).proxy.connect(), { replicas: 1, replicasTimeout: 150 });
    const multi = new MultiLock(hall.lock(0, "a"), strict.getLock(hall.name("b")), hall.lock(0, "c"));
    await expect(multi.lock()).rejects.toMatchObject({
      code: "REPLICAS",
      lockName: hall.name("b"),
      required: 1,
    });
    await hall.expectNothingLeft();
  });

  test.for(["a", "b", "c"])("the server of %s is silent in the first round: UNAVAILABLE", async (word) => {
    await using it = await open();
    const { hall, multi } = it;
    await multi.run(() => {});
    const { proxy } = hall.bed(clientOf(word));
    proxy.blackhole();
    const call = watch(multi.lock());
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    const quick = watch(multi.lock({ wait: TIME / 2 }));
    expect(await failsSoon(quick)).toMatchObject({ code: "UNAVAILABLE" });
    const tried = watch(multi.tryLock());
    expect(await failsSoon(tried)).toMatchObject({ code: "UNAVAILABLE" });
    proxy.restore();
    await hall.expectNothingLeft();
    await until("it can be had again", () => multi.run(() => true).catch(() => false));
  });

  for (const kind of KINDS) {
    test(`a ${kind.name} was granted, but the answer never came: all are given back [F38]`, async () => {
      await using hall = await Hall.of(stages, impatient, { ...impatient, server: 1 });
      const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b", kind), hall.lock(0, "c"));
      await multi.run(() => {});
      const { proxy } = hall.bed(1);
      proxy.delayReplies(60_000, script("acquire"));
      const call = watch(multi.lock());
      await until("it is held on the server", async () => (await hall.held()).includes("b"));
      expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE", lockName: hall.name("b") });
      // The server executes the undo of the grant at once, though its answer does not arrive.
      await until("all are given back", async () => (await hall.held()).length === 0);
      proxy.restore();
      await hall.expectNothingLeft();
    });
  }

  test.for(["a", "b", "c"])(
    "the answer about %s is lost with its connection: it counts once [F38]",
    async (word) => {
      await using it = await open();
      const { hall, multi } = it;
      await multi.run(() => {});
      const { proxy } = hall.bed(clientOf(word));
      const cut = proxy.cutReplyOf(script("acquire", hall.name(word)));
      const hold = await soon(watch(multi.lock()));
      expect(cut.hits).toBe(1);
      expect(await hall.hash(clientOf(word), word)).toEqual({
        [hold.members[["a", "b", "c"].indexOf(word)]?.ownerId ?? ""]: "1",
      });
      proxy.cutReplyOf(script("release", hall.name(word)));
      await hold.unlock();
      expect(hold.signal.aborted).toBe(false);
      await hall.expectNothingLeft();
    },
  );

  test("a nested call without a known outcome is undone alone", async () => {
    await using hall = await Hall.of(stages, impatient, { ...impatient, server: 1 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"));
    const outer = await multi.lock({ lease: 60_000 });
    hall.bed(1).proxy.delayReplies(60_000, script("reenter"));
    await expect(multi.lock({ owner: outer })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    hall.bed(1).proxy.restore();
    await until("the counts are what they were", async () => {
      const hashes = await Promise.all([hall.hash(0, "a"), hall.hash(1, "b"), hall.hash(0, "c")]);
      return hashes.every((hash) => Object.values(hash).join() === "1");
    });
    expect(outer.isHeld).toBe(true);
    const inner = await multi.lock({ owner: outer });
    await inner.unlock();
    await outer.unlock();
    await hall.expectNothingLeft();
  });

  test("the lease of one cannot be told: nothing is held", async () => {
    await using it = await open();
    const { hall, multi } = it;
    hall.bed(1).proxy.delayReplies(60_000, script("extend"));
    await expect(multi.lock({ lease: 5_000 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await until("all are given back", async () => (await hall.held()).length === 0);
    hall.bed(1).proxy.restore();
    await hall.expectNothingLeft();
  });
});

test("one member is refused, another one's server is silent: the call waits", async () => {
  await using hall = await Hall.of(stages, {}, { server: 1, commandTimeout: 2_000 }, {});
  const theirs = await hall.lock(2, "a").lock();
  hall.bed(1).proxy.delayReplies(NEVER, script("acquire"));
  const call = watch(new MultiLock(hall.lock(0, "a"), hall.lock(1, "b")).lock());
  await until("it waits for a", async () => (await hall.channels()).join().includes(hall.name("a")));
  hall.bed(1).proxy.restore();
  await theirs.unlock();
  await (await soon(call)).unlock();
  await hall.expectNothingLeft();
});

test("one member's server is known to be silent: the call waits for the others before it asks there", async () => {
  await using hall = await Hall.of(stages, {}, { server: 1, commandTimeout: 2_000 }, {});
  const theirs = await hall.lock(2, "a").lock();
  hall.bed(1).proxy.delayReplies(NEVER, script("acquire"));
  await expect(hall.lock(1, "c").tryLock()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  const call = watch(new MultiLock(hall.lock(0, "a"), hall.lock(1, "b")).lock());
  await until("it waits for a", async () => (await hall.channels()).join().includes(hall.name("a")));
  expect(hall.scripts(1).some(({ command }) => script("acquire", hall.name("b"))(command))).toBe(false);
  hall.bed(1).proxy.restore();
  await theirs.unlock();
  await (await soon(call)).unlock();
  await hall.expectNothingLeft();
});

describe.concurrent("a call that already waits survives an outage", () => {
  test.for([
    ["a", 0],
    ["a", 1],
    ["b", 0],
    ["b", 1],
  ] as const)("it waits for %s, the server of client %i goes silent and comes back", async ([word, i]) => {
    await using it = await open();
    const { hall, multi } = it;
    const theirs = await hall.lock(word === "a" ? 2 : 3, word).lock();
    const call = await hall.parked(word, () => multi.lock());
    const { proxy } = hall.bed(i);
    proxy.blackhole();
    await theirs.unlock();
    const begun = performance.now();
    // Longer than a command's time, so that every command has been given up once.
    await until(
      "the outage has lasted",
      () => performance.now() - begun > 2.5 * TIME || call.state !== "pending",
    );
    expect(call.state).toBe("pending");
    proxy.restore();
    await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });

  test("the server goes silent when only the lease is left to be set [B183]", async () => {
    await using it = await open();
    const { hall, multi } = it;
    const theirs = await hall.lock(2, "a").lock();
    const call = await hall.parked("a", () => multi.lock({ lease: 5_000 }));
    const { proxy } = hall.bed(1);
    proxy.delayReplies(60_000, script("extend", hall.name("b")));
    await theirs.unlock();
    await until("the lease is told", () =>
      hall.scripts(1).some(({ command }) => script("extend", hall.name("b"))(command)),
    );
    await until("it gives all back", async () => !(await hall.held()).includes("a"));
    expect(call.state).toBe("pending");
    proxy.restore();
    await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });

  test("the answer about the read side is missing, of a lock whose write side it has", async () => {
    await using hall = await Hall.of(stages, impatient, {});
    const theirs = await hall.lock(1, "a").lock();
    const multi = new MultiLock(hall.lock(0, "a"), hall.read(0, "b"), hall.write(0, "b"));
    const call = await hall.parked("a", () => multi.lock());
    const { proxy } = hall.bed(0);
    proxy.delayReplies(60_000, script("reenter", hall.name("b")));
    await theirs.unlock();
    await until("it gives up for now", () =>
      hall.scripts(0).some(({ command }) => script("undo", hall.name("b"))(command)),
    );
    proxy.restore();
    await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });

  test("it holds nothing while it waits for the server of one to come back", async () => {
    await using it = await open();
    const { hall, multi } = it;
    const theirs = await hall.lock(2, "a").lock();
    const call = await hall.parked("a", () => multi.lock());
    hall.bed(1).proxy.refuse();
    await theirs.unlock();
    await until("it has been tried", async () => {
      const other = await hall.lock(2, "a").tryLock();
      await other?.unlock();
      return (
        other !== null && hall.scripts(0).some(({ command }) => script("release", hall.name("a"))(command))
      );
    });
    await until("it holds nothing", async () => (await hall.held()).length === 0);
    hall.bed(1).proxy.restore();
    await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });

  test("its time is over meanwhile: UNAVAILABLE", async () => {
    await using it = await open();
    const { hall, multi } = it;
    const theirs = await hall.lock(2, "a").lock();
    const call = await hall.parked("a", () => multi.lock({ wait: 8_000 }));
    hall.bed(1).proxy.refuse();
    await theirs.unlock();
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    hall.bed(1).proxy.restore();
    await hall.expectNothingLeft();
  });

  test("its time is over while Redis is well: WAIT_TIMEOUT, however slow the last try was", async () => {
    // A server counts as silent after a tenth of commandTimeout.
    const calm = { commandTimeout: 200_000 };
    await using hall = await Hall.of(stages, calm, { ...calm, server: 1 }, {});
    const theirs = await hall.lock(2, "a").lock();
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
    const call = await hall.parked("a", () => multi.lock({ wait: 5_000 }));
    hall.bed(1).proxy.delayReplies(10_000, script("acquire"));
    await theirs.unlock();
    expect(await failsSoon(call)).toMatchObject({ code: "WAIT_TIMEOUT", lockName: multi.name });
    hall.bed(1).proxy.restore();
    await hall.expectNothingLeft();
  });
});
