/**
 * Calls that end without an answer: time-outs, aborts, a closed client, servers that are down, silent or restarted. The
 * caller hears of it in time, and nothing stays behind on the server once it answers again.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RedisServer, until } from "../support/index.js";
import {
  type Bed,
  expectHeld,
  expectHeldBesidesMarkers,
  expectNothingLeft,
  expectNothingLeftSoon,
  failOnUnhandledRejections,
  pause,
  Stage,
  script,
  type Topology,
  turn,
  watch,
} from "./harness.js";

/** More than a call may take beyond its bound, on a loaded machine. */
const SLACK = 1_500;
/** A delay that only `restore` ends. */
const FOREVER = 60_000;

failOnUnhandledRejections();

describe("a server of its own", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = await Stage.start(["standalone"]);
  });
  afterEach(() => stage[Symbol.asyncDispose]());

  const away: [string, (server: RedisServer) => Promise<void>, (server: RedisServer) => Promise<void>][] = [
    [
      "killed",
      (server) => server.kill(),
      async (server) => {
        await server.restart();
      },
    ],
    ["stopped by SIGSTOP", async (server) => server.pause(), async (server) => server.resume()],
  ];

  test.each(away)(
    "%s: tryLock(200) rejects UNAVAILABLE in time and leaves nothing once the server is back",
    async (_, take, giveBack) => {
      await using bed = await stage.bed();
      await using offline = await stage.bed({ redis: { enableOfflineQueue: false } });
      await using impatient = await stage.bed({ redis: { commandTimeout: 100 } });
      const beds = [bed, offline, impatient];
      await take(stage.server);
      const calls = beds.map((each) => watch(each.lock.tryLock(200)));
      await until("all calls are over", () => calls.every(({ state }) => state !== "pending"));
      for (const call of calls) {
        expect(call.error).toMatchObject({ code: "UNAVAILABLE" });
        expect(call.took).toBeGreaterThan(150);
        expect(call.took).toBeLessThan(200 + SLACK);
      }
      await giveBack(stage.server);
      for (const each of beds) await expectNothingLeftSoon(each);
    },
  );

  test.each(away)(
    "%s: tryLock() and lock() reject UNAVAILABLE after commandTimeout",
    async (_, take, giveBack) => {
      await using bed = await stage.bed({ client: { commandTimeout: 400 } });
      await take(stage.server);
      const calls = [watch(bed.lock.tryLock()), watch(bed.client.getLock(`${bed.name}b`).lock())];
      await until("all calls are over", () => calls.every(({ state }) => state !== "pending"));
      for (const call of calls) {
        expect(call.error).toMatchObject({ code: "UNAVAILABLE" });
        expect(call.took).toBeGreaterThan(350);
        expect(call.took).toBeLessThan(400 + SLACK);
      }
      await giveBack(stage.server);
      await expectNothingLeftSoon(bed);
    },
  );

  test("a server that is silent beyond the lease: the grant that arrives late is given back as LOCK_LOST", async () => {
    await using bed = await stage.bed();
    stage.server.pause();
    const call = watch(bed.lock.lock({ lease: 300 }));
    await pause(500);
    stage.server.resume();
    await until("the call is over", () => call.state !== "pending");
    expect(call.error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await expectNothingLeftSoon(bed);
  });

  test("an unlock while the server is away rejects UNAVAILABLE, goes on, and can be asked again", async () => {
    await using bed = await stage.bed({ client: { commandTimeout: 300 } });
    const hold = await bed.lock.lock();
    stage.server.pause();
    const first = watch(hold.unlock());
    expect(hold.isHeld).toBe(false);
    await until("it is over", () => first.state !== "pending");
    expect(first.error).toMatchObject({ code: "UNAVAILABLE" });
    const second = watch(hold.unlock());
    stage.server.resume();
    await until("it is over", () => second.state !== "pending");
    expect(second.error).toBeUndefined();
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });

  test("a run whose release gets no answer resolves, emits `error`, and the release goes on", async () => {
    await using bed = await stage.bed({ client: { commandTimeout: 300 } });
    await expect(
      bed.lock.run(() => {
        stage.server.pause();
        return "done";
      }),
    ).resolves.toBe("done");
    expect(bed.troubles).toEqual([["error", expect.objectContaining({ lockName: bed.name })]]);
    expect(bed.troubles).toMatchObject([["error", { cause: { code: "UNAVAILABLE" } }]]);
    stage.server.resume();
    await expectNothingLeftSoon(bed);
  });

  test("SCRIPT FLUSH again and again under load disturbs no call", async () => {
    await using bed = await stage.bed();
    let flushing = true;
    let flushes = 0;
    const flusher = (async () => {
      for (; flushing; flushes++) {
        await stage.server.call("SCRIPT", "FLUSH");
        await pause(5);
      }
    })();
    const end = performance.now() + 1_500;
    let cycles = 0;
    const task = async (i: number): Promise<void> => {
      const lock = bed.client.getLock(`${bed.name}-${i % 4}`);
      while (performance.now() < end) {
        await bed.client.scope(async () => {
          await lock.lock();
          await lock.lock();
          expect(await lock.getHoldCount()).toBe(2);
          await lock.unlock();
          await lock.unlock();
        });
        cycles++;
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, i) => task(i)));
    flushing = false;
    await flusher;
    expect(cycles).toBeGreaterThan(5);
    expect(flushes).toBeGreaterThan(5);
    expect(bed.troubles).toEqual([]);
    await expectNothingLeft(bed, 20_000);
  });

  test("a script that the server forgot between two calls is sent again in full, once", async () => {
    await using bed = await stage.bed();
    await (await bed.lock.lock()).unlock();
    await stage.server.call("SCRIPT", "FLUSH");
    bed.proxy.clear();
    const hold = await bed.lock.lock();
    await expectHeldBesidesMarkers(bed, hold.ownerId, 1);
    const sent = bed.proxy.commands.filter(({ command }) => script("acquire")(command));
    expect(sent.map(({ command }) => command[0])).toEqual(["EVALSHA", "EVAL"]);
    await hold.unlock();
  });
});

describe("a server that keeps its data", () => {
  let server: RedisServer;
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.start(["standalone"], ["--appendonly", "yes", "--appendfsync", "always"]);
    server = stage.server;
  });
  afterAll(() => stage[Symbol.asyncDispose]());

  test("restarts while calls are on their way: each counts once, and all is given back", async () => {
    await using bed = await stage.bed();
    const names = Array.from({ length: 30 }, (_, i) => `${bed.name}-${i}`);
    const held = names.slice(0, 10).map((name) => bed.client.getLock(name));
    const before = await Promise.all(held.map((lock) => lock.lock()));
    const calls = [
      ...before.map((hold) => watch(hold.unlock())),
      ...names.slice(10).map((name) => watch(bed.client.getLock(name).run(() => {}))),
    ];
    await server.kill();
    await server.restart();
    await until("all calls are over", () => calls.every(({ state }) => state !== "pending"), {
      timeout: 8_000,
    });
    expect(calls.map(({ error }) => error)).toEqual(calls.map(() => undefined));
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });
});

const topologies: [Topology][] = [["standalone"], ["cluster"]];

describe.concurrent.each(topologies)("%s", (topology) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.start([topology]);
  }, 30_000);
  afterAll(() => stage[Symbol.asyncDispose]());

  test("black hole: tryLock(200) rejects UNAVAILABLE in time and leaves nothing when it is over", async () => {
    await using bed = await stage.bed({ topology });
    bed.proxy.blackhole();
    const call = watch(bed.lock.tryLock(200));
    await until("the call is over", () => call.state !== "pending");
    expect(call.error).toMatchObject({ code: "UNAVAILABLE" });
    expect(call.took).toBeLessThan(200 + SLACK);
    bed.proxy.restore();
    await expectNothingLeftSoon(bed);
  });

  test("stalled network: what was given up is executed late and undone", async () => {
    await using bed = await stage.bed({ topology, client: { commandTimeout: 300 } });
    bed.proxy.stall();
    const call = watch(bed.lock.lock());
    await until("the call is over", () => call.state !== "pending");
    expect(call.error).toMatchObject({ code: "UNAVAILABLE" });
    bed.proxy.restore();
    await until("it was executed after all", async () => Object.keys(await bed.keys()).length > 0);
    await expectNothingLeftSoon(bed);
  });

  test("an abort with the grant in flight rejects at once with the signal's reason and leaves nothing", async () => {
    await using bed = await stage.bed({ topology });
    const delays = Array.from({ length: 26 }, (_, i) => i * 10);
    await (await bed.lock.lock()).unlock();
    bed.proxy.delayReplies(200);
    const outcomes = await Promise.all(delays.map((delay, i) => abortAfter(bed, i, delay)));
    expect(outcomes.filter((outcome) => outcome === "aborted").length).toBeGreaterThan(3);
    bed.proxy.restore();
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });

  test("an abort with a nested grant in flight leaves the outer hold as it was", async () => {
    await using bed = await stage.bed({ topology });
    await bed.client.scope(async () => {
      const outer = await bed.lock.lock();
      await bed.lock.lock();
      await bed.lock.unlock();
      bed.proxy.delayReplies(FOREVER, script("reenter"));
      const controller = new AbortController();
      const call = watch(bed.lock.lock({ signal: controller.signal }));
      await until("it was executed", async () => {
        const value = (await bed.keys())[bed.name]?.value as Record<string, string>;
        return value[outer.ownerId] === "2";
      });
      controller.abort("enough");
      await turn();
      expect(call.error).toBe("enough");
      bed.proxy.restore();
      expect(await bed.lock.getHoldCount()).toBeLessThanOrEqual(2);
      await until("it is undone", async () => (await bed.lock.getHoldCount()) === 1);
      await bed.lock.lock();
      await expectHeldBesidesMarkers(bed, outer.ownerId, 2);
      await bed.lock.unlock();
      await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
      await bed.lock.unlock();
    });
    await expectNothingLeft(bed);
    expect(bed.troubles).toEqual([]);
  });

  test("a signal that is aborted already: nothing is sent", async () => {
    await using bed = await stage.bed({ topology });
    bed.proxy.clear();
    await expect(bed.lock.lock({ signal: AbortSignal.abort("no") })).rejects.toBe("no");
    await expect(bed.lock.tryLock(100, 1_000, { signal: AbortSignal.abort("no") })).rejects.toBe("no");
    expect(bed.proxy.count(script("acquire"))).toBe(0);
  });

  test("an abort and close() right behind it leave nothing", async () => {
    await using bed = await stage.bed({ topology });
    bed.proxy.delayReplies(FOREVER, script("acquire"));
    const controller = new AbortController();
    const call = watch(bed.lock.lock({ signal: controller.signal }));
    await until("it was executed", async () => (await bed.keys())[bed.name] !== undefined);
    controller.abort("enough");
    const closing = bed.client.close({ timeout: 0 });
    await turn();
    expect(call.error).toBe("enough");
    bed.proxy.restore();
    await closing;
    await bed.redis.ping();
    await expectNothingLeft(bed);
  });

  test("close() with the grant in flight rejects the call with CLIENT_CLOSED and leaves nothing", async () => {
    await using bed = await stage.bed({ topology });
    bed.proxy.delayReplies(FOREVER, script("acquire"));
    const call = watch(bed.lock.lock());
    await until("it was executed", async () => (await bed.keys())[bed.name] !== undefined);
    const closing = bed.client.close({ timeout: 0 });
    await turn();
    expect(call.error).toMatchObject({ code: "CLIENT_CLOSED" });
    bed.proxy.restore();
    await closing;
    await bed.redis.ping();
    await expectNothingLeft(bed);
  });

  test("close() right behind a call that was given up leaves nothing", async () => {
    await using bed = await stage.bed({ topology });
    bed.proxy.delayReplies(FOREVER, script("acquire"));
    const call = watch(bed.lock.tryLock(100));
    await until("the call is over", () => call.state !== "pending");
    expect(call.error).toMatchObject({ code: "UNAVAILABLE" });
    setTimeout(() => bed.proxy.restore(), 200);
    await bed.client.close({ timeout: 0 });
    await bed.redis.ping();
    await expectNothingLeft(bed);
  });

  // Several times: whether close() or the call gives up first is a matter of a millisecond.
  test.each([1, 2, 3, 4, 5, 6])(
    "close() while Redis is away (%i): the release and the clean-ups arrive later",
    async () => {
      await using bed = await stage.bed({ topology, client: { commandTimeout: 300 } });
      const hold = await bed.client.getLock(`{${bed.name}}-held`).lock();
      bed.proxy.stall();
      const call = watch(bed.lock.lock());
      const closing = bed.client.close({ timeout: 0 });
      await turn();
      expect(call.error).toMatchObject({ code: "CLIENT_CLOSED" });
      expect(hold.isHeld).toBe(false);
      await closing;
      bed.proxy.restore();
      await bed.redis.ping();
      await until("all was given back", async () =>
        Object.keys(await bed.keys()).every((key) => /^(redisson_unlock_latch|holdfast_over):/.test(key)),
      );
    },
  );

  test("a nested call that is given up is undone alone", async () => {
    await using bed = await stage.bed({ topology });
    await bed.client.scope(async () => {
      const outer = await bed.lock.lock();
      await bed.lock.lock();
      await bed.lock.unlock();
      await expectHeld(bed, outer.ownerId, 1);
      bed.proxy.delayReplies(FOREVER, script("reenter"));
      const call = watch(bed.lock.tryLock(100));
      await until("the call is over", () => call.state !== "pending");
      expect(call.error).toMatchObject({ code: "UNAVAILABLE" });
      expect(outer.isHeld).toBe(true);
      bed.proxy.restore();
      await bed.lock.lock(); // behind the clean-up
      await expectHeldBesidesMarkers(bed, outer.ownerId, 2);
      await bed.lock.unlock();
      await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
      expect(outer.isHeld).toBe(true);
      await bed.lock.unlock();
    });
    await expectNothingLeft(bed);
    expect(bed.troubles).toEqual([]);
  });

  test("a grant that arrives after its lease is given back and rejects LOCK_LOST", async () => {
    await using bed = await stage.bed({ topology });
    bed.proxy.delayReplies(300, script("acquire"));
    await expect(bed.lock.lock({ lease: 150 })).rejects.toMatchObject({ code: "LOCK_LOST" });
    await expectNothingLeftSoon(bed);
  });
});

async function abortAfter(bed: Bed, i: number, delay: number): Promise<"aborted" | "granted"> {
  const controller = new AbortController();
  const call = watch(bed.client.getLock(`{${bed.name}}-${i}`).lock({ signal: controller.signal }));
  await Promise.race([pause(delay), call.promise.catch(() => {})]);
  const wasGranted = call.state === "resolved";
  controller.abort(new Error(`aborted after ${delay} ms`));
  await turn();
  if (wasGranted) {
    await call.value?.unlock();
    return "granted";
  }
  expect(call.error).toBe(controller.signal.reason);
  return "aborted";
}
