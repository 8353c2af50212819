/** Calls for a MultiLock that end early: by their signal at any moment, or because a member's client ends. */
import { describe, expect, test } from "vitest";
import { type Hold, MultiLock, RedisUnavailableError } from "../../src/index.js";
import { script, soon, type Watched, watch } from "../faults/harness.js";
import { SLACK, STEADY, until } from "../support/index.js";
import { Hall, NEVER, useStages } from "./helpers.js";

const stages = await useStages();

const patient = { pollCap: NEVER };
const enough = new Error("enough");
/** Milliseconds, longer than any call may take. */
const FOREVER = 60_000;

/** Members `a` and `c` on one server, `b` on another; a rival has a client on each. */
async function open(): Promise<{ hall: Hall; multi: MultiLock } & AsyncDisposable> {
  const hall = await Hall.of(
    stages,
    { ...patient, watchdogTimeout: STEADY },
    { ...patient, watchdogTimeout: STEADY, server: 1 },
    {},
    { server: 1 },
  );
  const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"));
  return { hall, multi, [Symbol.asyncDispose]: () => hall[Symbol.asyncDispose]() };
}

/** The rival's hold on a member. */
const seize = (hall: Hall, word: string): Promise<Hold> => hall.lock(word === "b" ? 3 : 2, word).lock();

/** On no server do the clients of the group hold, await or renew anything. */
async function expectQuiet(hall: Hall): Promise<void> {
  await hall.expectNothingLeft();
  await until("nothing is sent any more", () => hall.isQuiet());
  const renewals = [0, 1].map(
    (i) => hall.scripts(i).filter(({ command }) => script("renew")(command)).length,
  );
  const sent = [0, 1].map((i) => hall.scripts(i).length);
  // If a watchdog still had one of the old holds, it would renew that before these new ones.
  const others = [hall.lock(0, "y"), hall.lock(1, "z")].map((lock) => lock.lock());
  await until("the watchdogs of both clients were there", () =>
    [0, 1].every(
      (i) =>
        hall.scripts(i).filter(({ command }) => script("renew")(command)).length >= (renewals[i] ?? 0) + 2,
    ),
  );
  for (const i of [0, 1]) {
    const since = hall
      .scripts(i)
      .slice(sent[i])
      .map(({ command }) => command.join(" "));
    for (const word of ["a", "b", "c"])
      expect(since.filter((each) => each.includes(hall.name(word)))).toEqual([]);
  }
  for (const hold of await Promise.all(others)) await hold.unlock();
}

describe.concurrent("aborted", () => {
  test.for(["a", "b", "c"])("while it waits for %s", async (word) => {
    await using it = await open();
    const { hall, multi } = it;
    const theirs = await seize(hall, word);
    const controller = new AbortController();
    const { signal } = controller;
    const call = await hall.parked(word, () => multi.lock({ signal }));
    controller.abort(enough);
    await expect(soon(call)).rejects.toBe(enough);
    expect(await hall.held()).toEqual([word]);
    await until("nobody listens", async () => (await hall.channels()).length === 0);
    await theirs.unlock();
    await expectQuiet(hall);
  });

  test.for(["a", "b", "c"])("while the answer about %s is on its way", async (word) => {
    await using it = await open();
    const { hall, multi } = it;
    await multi.run(() => {});
    const { proxy } = hall.bed(word === "b" ? 1 : 0);
    proxy.delayReplies(FOREVER, script("acquire", hall.name(word)));
    const controller = new AbortController();
    const call = watch(multi.lock({ signal: controller.signal }));
    await until("it is held on the server", async () => (await hall.held()).includes(word));
    controller.abort(enough);
    await expect(soon(call)).rejects.toBe(enough);
    expect(call.took).toBeLessThan(SLACK);
    proxy.restore();
    await expectQuiet(hall);
  });

  test("while its lease is about to begin", async () => {
    await using it = await open();
    const { hall, multi } = it;
    hall.bed(1).proxy.delayReplies(FOREVER, script("extend"));
    const controller = new AbortController();
    const call = watch(multi.lock({ signal: controller.signal, lease: 20_000 }));
    await until("it has asked for it", () =>
      hall.scripts(1).some(({ command }) => script("extend")(command)),
    );
    controller.abort(enough);
    await expect(soon(call)).rejects.toBe(enough);
    hall.bed(1).proxy.restore();
    await expectQuiet(hall);
  });

  test("with an UNAVAILABLE of the caller's own, while its lease is about to begin after a wait [B133]", async () => {
    const client = { commandTimeout: 2 * FOREVER };
    await using hall = await Hall.of(stages, client, { ...client, server: 1 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
    const theirs = await hall.lock(0, "a").lock();
    hall.bed(1).proxy.delayReplies(FOREVER, script("extend"));
    const controller = new AbortController();
    const { signal } = controller;
    const call = await hall.parked("a", () => multi.lock({ signal, wait: FOREVER, lease: 20_000 }));
    await theirs.unlock();
    await until("it has asked for it", () =>
      hall.scripts(1).some(({ command }) => script("extend")(command)),
    );
    const reason = new RedisUnavailableError("of another call");
    controller.abort(reason);
    await expect(soon(call)).rejects.toBe(reason);
    hall.bed(1).proxy.restore();
    await hall.expectNothingLeft();
  });

  test("at any moment of its rounds, while members come and go", async () => {
    await using it = await open();
    const { hall, multi } = it;
    for (let round = 0; round < 24; round++) {
      const word = ["a", "b", "c"][round % 3] ?? "a";
      const theirs = round % 4 === 3 ? undefined : await seize(hall, word);
      const controller = new AbortController();
      const call: Watched<Hold> = watch(multi.lock({ signal: controller.signal }));
      for (let n = 0; n < round; n++) await new Promise((resolve) => setImmediate(resolve));
      const returned = theirs?.unlock();
      for (let n = 0; n < round % 5; n++) await new Promise((resolve) => setImmediate(resolve));
      controller.abort(enough);
      await returned;
      await until("it is over", () => call.state !== "pending");
      if (call.state === "rejected") expect(call.error).toBe(enough);
      await call.value?.unlock();
    }
    await expectQuiet(hall);
  });

  test.for([["a"], ["a", "c"]])("within the very turn in which it is granted: %s", async (words) => {
    await using it = await open();
    const { hall } = it;
    const multi = hall.multi(0, ...words);
    await multi.run(() => {});
    for (let steps = 0; steps < 40; steps++) {
      const controller = new AbortController();
      const call: Watched<Hold> = watch(multi.lock({ signal: controller.signal }));
      // The answer to PING arrives together with that of the last try, and both are read in the same turn.
      await hall.bed(0).redis.ping();
      for (let n = 0; n < steps; n++) await null;
      controller.abort(enough);
      await until("it is over", () => call.state !== "pending");
      // If the call was granted, the test gives the lock back, or the next call would wait.
      await call.value?.unlock();
      await until("it is given back", async () => (await hall.held()).length === 0);
    }
    await hall.expectNothingLeft();
  });

  test("by a signal that many share: none of them is left listening to it", async () => {
    await using it = await open();
    const { hall, multi } = it;
    const theirs = await seize(hall, "b");
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    const calls = Array.from({ length: 20 }, () => watch(multi.lock({ signal })));
    await until("they wait", () => listeners > 0);
    controller.abort(enough);
    for (const call of calls) await expect(soon(call)).rejects.toBe(enough);
    await until("all listeners are gone", () => listeners === 0);
    await theirs.unlock();
    await expectQuiet(hall);
  });
});

describe.concurrent("the client of a member is closed", () => {
  test.for([
    ["a", 0],
    ["a", 1],
    ["b", 0],
    ["b", 1],
  ] as const)("while the call waits for %s: that of client %i", async ([word, i]) => {
    await using it = await open();
    const { hall, multi } = it;
    const theirs = await seize(hall, word);
    const call = await hall.parked(word, () => multi.lock());
    await hall.client(i).close({ timeout: 0 });
    await expect(soon(call)).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
    expect(await hall.held()).toEqual([word]);
    await until("nobody listens", async () => (await hall.channels()).length === 0);
    await expect(multi.lock()).rejects.toMatchObject({ code: "CLIENT_CLOSED", lockName: multi.name });
    await expect(multi.tryLock()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
    await expect(multi.isLocked()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
    await theirs.unlock();
    await hall.expectNothingLeft();
  });

  test.for([0, 1] as const)("while a try is on its way: that of client %i", async (i) => {
    await using it = await open();
    const { hall, multi } = it;
    await multi.run(() => {});
    hall.bed(1).proxy.delayReplies(FOREVER, script("acquire"));
    const call = watch(multi.lock());
    await until("it is held on the server", async () => (await hall.held()).includes("b"));
    await hall.client(i).close({ timeout: 0 });
    await expect(soon(call)).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
    await hall.expectNothingLeft();
  });

  test.for([0, 1] as const)("while it is held: that of client %i", async (i) => {
    await using it = await open();
    const { hall, multi } = it;
    const hold = await multi.lock();
    let inside = false;
    const stay = (inner: Hold): Promise<boolean> => {
      inside = true;
      return until("the signal", () => inner.signal.aborted);
    };
    const running = watch(multi.run(stay, { owner: hold }));
    await until("both are held", () => inside);
    await hall.client(i).close({ timeout: 0 });
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", lockName: multi.name, reason: "closed" });
    expect(hold.isHeld).toBe(false);
    await expect(soon(running)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "closed", result: true });
    await hall.expectNothingLeft();
    await hold.unlock();
  });

  test("with time to end by itself, it is given back and nothing is lost", async () => {
    await using it = await open();
    const { hall, multi } = it;
    const hold = await multi.lock();
    const closed = watch(hall.client(1).close({ timeout: 10_000 }));
    await expect(multi.lock()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
    await hold.unlock();
    await soon(closed);
    expect(hold.signal.aborted).toBe(false);
    await hall.expectNothingLeft();
  });
});
