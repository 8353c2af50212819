/** Locks in tests without Redis: a real client on a server in memory, whose time passes only when a test says so. */
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestClient, createTestServer, type TestClient } from "../../src/entries/testing.js";
import {
  type Hold,
  isLockError,
  type Lock,
  type LockClient,
  type LossReason,
  MultiLock,
} from "../../src/index.js";

const HOUR = 3_600_000;
const REASONS: readonly LossReason[] = ["forced", "taken", "expired", "unreachable", "closed"];

function pair(): [TestClient, TestClient] {
  const server = createTestServer();
  return [createTestClient({ server }), createTestClient({ server })];
}

/** The state of a promise when all work is done that needs no time. */
async function stateOf(work: Promise<unknown>, { settle }: TestClient): Promise<unknown> {
  let state: unknown = "pending";
  work.then(
    (value) => {
      state = value;
    },
    (error: unknown) => {
      state = isLockError(error) ? error.code : error;
    },
  );
  await settle();
  return state;
}

/** The reasons of the rejections that nobody handles until the test ends. */
function unheardRejections(): readonly unknown[] {
  const unheard: unknown[] = [];
  const hear = (reason: unknown) => unheard.push(reason);
  process.on("unhandledRejection", hear);
  onTestFinished(() => void process.off("unhandledRejection", hear));
  return unheard;
}

describe("clients", () => {
  test("of one server exclude each other", async () => {
    const [a, b] = pair();
    const hold = await a.client.getLock("job").lock();
    expect(await b.client.getLock("job").tryLock()).toBeNull();
    const waiting = b.client.getLock("job").lock();
    expect(await stateOf(waiting, b)).toBe("pending");
    await hold.unlock();
    const next = await waiting;
    expect(next.ownerId.startsWith(b.client.id)).toBe(true);
    expect(await a.client.getLock("job").isLocked()).toBe(true);
    await next.unlock();
  });

  test("of two servers do not", async () => {
    const [a, b] = [createTestClient(), createTestClient()];
    const holds = await Promise.all([a, b].map(({ client }) => client.getLock("job").tryLock()));
    expect(holds.map((hold) => hold?.isHeld)).toEqual([true, true]);
  });

  test("run one critical section at a time, however many want it", async () => {
    const [a, b] = pair();
    let inside = 0;
    let done = 0;
    const work = async () => {
      expect(++inside).toBe(1);
      await a.settle();
      inside--;
      done++;
    };
    const runs = Array.from({ length: 40 }, (_, i) => (i % 2 ? a : b).client.getLock("job").run(work));
    await Promise.all(runs);
    expect(done).toBe(40);
  });

  test("take the options of a client, and refuse others", async () => {
    const server = createTestServer();
    const { client } = createTestClient({ server, prefix: "app", label: "worker 1", watchdogTimeout: 3_000 });
    expect(client.label).toBe("worker 1");
    const hold = await client.getLock("job").lock();
    const other = createTestClient({ server });
    expect(await other.client.getLock("app:job").isLocked()).toBe(true);
    expect(await client.getLock("job").remainTimeToLive()).toBe(3_000);
    await hold.unlock();
    expect(() => createTestClient({ colour: "red" } as object)).toThrow(TypeError);
    expect(() => createTestClient({ server: {} as never })).toThrow(TypeError);
    expect(() => createTestClient({ watchdogTimeout: 1 })).toThrow(RangeError);
  });

  test.each([
    ["1", 1],
    ["true", true],
    ["null", null],
    ['"x"', "x"],
    ["an array", []],
    ["an array", [createTestServer()]],
    ["a function", () => {}],
    ["Symbol(s)", Symbol("s")],
  ])("take no options that are %s [B267]", (what, options) => {
    const refused = new TypeError(`createTestClient: options must be an object, not ${what}`);
    expect(() => createTestClient(options as never)).toThrow(refused);
  });

  test("take no options that are an instance of something else [B267]", () => {
    expect(() => createTestClient(new Map() as never)).toThrow(/not an instance of Map$/);
    expect(() => createTestClient(createTestServer() as never)).toThrow(TypeError);
  });

  test("are ready, and told apart by the server", async () => {
    const [a, b] = pair();
    await Promise.all([a.client.ready(), b.client.ready()]);
    const hold = await a.client.getFencedLock("job").lock();
    const seen: string[] = [];
    for await (const { name, kind, holders } of b.client.list())
      seen.push(name, kind, ...holders.map(({ ownerId }) => ownerId));
    expect(seen).toEqual(["job", "fenced", hold.ownerId]);
  });

  test("that are closed leave neither locks nor timers", async () => {
    const [a, b] = pair();
    const hold = await a.client.getLock("job").lock();
    const waiting = stateOf(b.client.getLock("job").lock(), b);
    await b.client.close();
    expect(await waiting).toBe("CLIENT_CLOSED");
    await a.client.close({ timeout: 0 });
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    await expect(a.client.getLock("job").lock()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
    await b.advance(HOUR);
    expect(await createTestClient().client.getLock("job").isLocked()).toBe(false);
  });

  test("that close give their holds the time of the clock", async () => {
    const { client, advance } = createTestClient();
    const hold = await client.getLock("job").lock();
    const closing = client.close({ timeout: HOUR });
    await advance(HOUR - 1);
    expect(hold.isHeld).toBe(true);
    await advance(1);
    await closing;
    expect(hold.isHeld).toBe(false);
  });
});

describe("advance", () => {
  test("an hour renews what the watchdog keeps", async () => {
    const [a, b] = pair();
    const hold = await a.client.getLock("job").lock();
    let renewed = 0;
    a.client.on("renewed", () => renewed++);
    await a.advance(HOUR);
    expect(hold.isHeld).toBe(true);
    expect(renewed).toBe(HOUR / 10_000);
    expect(await b.client.getLock("job").tryLock()).toBeNull();
    expect(await b.client.getLock("job").remainTimeToLive()).toBeGreaterThan(20_000);
  });

  test("ends a lease, and whoever waits gets the lock", async () => {
    const [a, b] = pair();
    const hold = (await a.client.getLock("job").tryLock(0, 10_000)) as Hold;
    const waiting = b.client.getLock("job").lock();
    await a.advance(9_000);
    expect(hold.isHeld).toBe(true);
    expect(hold.remaining).toBe(10_000 * 0.99 - 2 - 9_000);
    expect(await stateOf(waiting, b)).toBe("pending");
    await a.advance(1_000);
    expect(hold.isHeld).toBe(false);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect((await waiting).isHeld).toBe(true);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  type Get = (client: LockClient) => Lock | MultiLock;
  const lock: Get = (client) => client.getLock("job");
  const write: Get = (client) => client.getReadWriteLock("job").writeLock();
  const LAPSES: [what: string, held: Get, wanted: Get][] = [
    ["a lock", lock, lock],
    ["a fair lock", (client) => client.getFairLock("job"), (client) => client.getFairLock("job")],
    ["a read side", write, (client) => client.getReadWriteLock("job").readLock()],
    ["a write side", write, write],
    ["a group", lock, (client) => new MultiLock(client.getLock("other"), client.getLock("job"))],
  ];

  test.each(LAPSES)(
    "to the end of a dead holder's TTL gives the waiter %s then, and no sooner [B265]",
    async (_, held, wanted) => {
      const server = createTestServer();
      const [a, b] = [createTestClient({ server, watchdogTimeout: 10_000 }), createTestClient({ server })];
      await held(a.client).lock();
      await a.outage(HOUR);
      const waiting = wanted(b.client).lock();
      await b.advance(9_999);
      expect(await stateOf(waiting, b)).toBe("pending");
      await b.advance(1);
      expect(await stateOf(waiting, b)).toMatchObject({ isHeld: true });
    },
  );

  test("to the end of a leased permit gives it to who waits, at the latest a millisecond later [B265]", async () => {
    const [a, b] = pair();
    const permits = b.client.getPermitExpirableSemaphore("permits");
    await permits.trySetPermits(1);
    for (const lease of [5_000, 400, 3]) {
      // Times of the server are whole milliseconds; those of the clock need not be.
      await b.advance(0.4);
      const id = await a.client.getPermitExpirableSemaphore("permits").acquire({ lease });
      const waiting = permits.acquire({ lease: HOUR });
      await b.advance(lease + 1);
      const next = await stateOf(waiting, b);
      expect(next).toMatch(/^[0-9a-f]{32}$/);
      expect(next).not.toBe(id);
      await permits.release(next as string);
    }
  });

  test("ends a wait, at its time and not before", async () => {
    const [a, b] = pair();
    await a.client.getLock("job").lock();
    const waiting = b.client.getLock("job").lock({ wait: 5_000 });
    const trying = b.client.getLock("job").tryLock(7_000);
    await b.advance(4_999);
    expect(await stateOf(waiting, b)).toBe("pending");
    await b.advance(1);
    await expect(waiting).rejects.toMatchObject({ code: "WAIT_TIMEOUT", waited: 5_000 });
    expect(await stateOf(trying, b)).toBe("pending");
    await b.advance(2_000);
    expect(await trying).toBeNull();
  });

  test("leaves time to listen to what rejects meanwhile", async () => {
    const [a, b] = pair();
    const unheard = unheardRejections();
    await a.client.getLock("job").lock();
    const tooLong = b.client.getLock("job").lock({ wait: 5_000 });
    await b.advance(60_000);
    await expect(tooLong).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
    await b.outage(60_000);
    const unanswered = b.client.getSemaphore("s").acquire();
    await b.advance(60_000);
    await expect(unanswered).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const run = a.client
      .getLock("other")
      .run((hold) => new Promise((resolve) => hold.signal.addEventListener("abort", resolve)));
    await a.settle();
    await a.loseAll("taken");
    await expect(run).rejects.toMatchObject({ code: "LOCK_LOST" });
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(unheard).toEqual([]);
  });

  const passed = Promise.resolve();
  test.each([
    ["thousands of promises", 2_000, () => passed],
    ["some callbacks of process.nextTick", 3, () => new Promise<void>((done) => process.nextTick(done))],
  ])("lets no time pass before the work of a holder is done: %s [B185]", async (_, times, work) => {
    const server = createTestServer();
    const [a, b] = [createTestClient({ server }), createTestClient({ server })];
    await a.client.getLock("job").lock({ lease: 1_000 });
    const run = b.client.getLock("job").run(
      async () => {
        const granted = server.now;
        for (let i = 0; i < times; i++) await work();
        return server.now - granted;
      },
      { lease: 5_000 },
    );
    await b.advance(60_000);
    expect(await run).toBe(0);
  });

  test("lets no time pass before a grant that no replica has is undone: the call rejects REPLICAS [B186]", async () => {
    const server = createTestServer();
    const [a, b] = [createTestClient({ server, replicas: 1 }), createTestClient({ server })];
    await b.client.getLock("job").lock({ lease: 1_000 });
    const waiting = a.client.getLock("job").lock({ wait: 10_000 });
    await a.advance(20_000);
    await expect(waiting).rejects.toMatchObject({ code: "REPLICAS" });
  });

  test("leaves that time however many answers come meanwhile [B187]", async () => {
    const [a, b] = pair();
    const unheard = unheardRejections();
    await a.client.getLock("job").lock();
    const latch = a.client.getCountDownLatch("l");
    let answers = 0;
    a.client.on("renewed", () => {
      for (let i = 0; i < 40; i++) void latch.getCount().then(() => answers++);
    });
    const tooLong = b.client.getLock("job").lock({ wait: 60_000 });
    await b.advance(HOUR);
    await expect(tooLong).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
    expect(answers).toBe((40 * HOUR) / 10_000);
    expect(unheard).toEqual([]);
  });

  test("does not keep the event loop from turning, whatever a test asks for", async () => {
    const [a, b] = pair();
    await a.client.getLock("job").lock();
    let turned = false;
    setTimeout(() => {
      turned = true;
    }, 1);
    const lock = b.client.getLock("job");
    while (!turned) await lock.tryLock();
    expect(await lock.isLocked()).toBe(true);
  });

  test("moves one clock for all clients of a server, call after call", async () => {
    const server = createTestServer();
    const [a, b] = [createTestClient({ server }), createTestClient({ server })];
    const before = server.now;
    await Promise.all([a.advance(1_000), b.advance(500), a.advance(0)]);
    expect(server.now).toBe(before + 1_500);
    const hold = await b.client.getLock("job").lock();
    expect(hold.acquiredAt).toBe(server.now);
  });

  test("does not move by itself", async () => {
    const { client } = createTestClient();
    const hold = await client.getLock("job").lock({ lease: 5 });
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(hold.isHeld).toBe(true);
    expect(hold.remaining).toBeGreaterThan(0);
  });

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, "1000"])("refuses %s", async (ms) => {
    const { advance } = createTestClient();
    await expect(advance(ms as number)).rejects.toThrow(RangeError);
  });
});

describe("loseAll", () => {
  test.each(REASONS)("ends every hold at once, reason %s", async (reason) => {
    const [a, b] = pair();
    const holds = await Promise.all([
      a.client.getLock("one").lock(),
      a.client.getFairLock("two").lock({ lease: HOUR }),
      a.client.getReadWriteLock("three").readLock().lock(),
    ]);
    const kept = await b.client.getLock("four").lock();
    const told: unknown[] = [];
    a.client.on("lost", ({ lockName, reason: why }) => told.push([lockName, why]));
    const losing = a.loseAll(reason);
    for (const hold of holds) expect(hold.signal.aborted).toBe(true);
    await losing;
    for (const hold of holds) {
      expect(hold.isHeld).toBe(false);
      // A close has told the loss already, so unlock() does not reject.
      if (reason === "closed") await hold.unlock();
      else await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason });
    }
    expect(told.sort()).toEqual([
      ["one", reason],
      ["three", reason],
      ["two", reason],
    ]);
    expect(kept.isHeld).toBe(true);
    // A lost hold is given back on the server.
    expect(await b.client.getLock("one").tryLock()).toMatchObject({ isHeld: true });
  });

  test.each(REASONS)("makes a run reject with what it returned, reason %s", async (reason) => {
    const { client, loseAll } = createTestClient();
    const run = client.getLock("job").run(async (hold) => {
      await loseAll(reason);
      return hold.signal.aborted;
    });
    await expect(run).rejects.toMatchObject({ code: "LOCK_LOST", reason, result: true });
  });

  test("ends permits and groups as well, and later holds begin afresh", async () => {
    const { client, loseAll } = createTestClient();
    const permits = client.getPermitExpirableSemaphore("permits");
    await permits.trySetPermits(1);
    const id = await permits.acquire();
    const both = await new MultiLock(client.getLock("a"), client.getLock("b")).lock();
    await loseAll("unreachable");
    expect(both.signal.reason).toMatchObject({ reason: "unreachable" });
    await expect(permits.release(id)).rejects.toMatchObject({ code: "NOT_OWNER" });
    expect(await permits.availablePermits()).toBe(1);
    const again = await client.getLock("a").lock();
    await loseAll("forced");
    expect(again.signal.reason).toMatchObject({ reason: "forced" });
  });

  test("refuses what is no reason", async () => {
    const { loseAll } = createTestClient();
    await expect(loseAll("gone" as LossReason)).rejects.toThrow(TypeError);
  });
});

describe("outage", () => {
  test("shorter than the lease: the hold is suspended, and goes on", async () => {
    const [a, b] = pair();
    const hold = await a.client.getLock("job").lock();
    const told: string[] = [];
    for (const name of ["suspended", "renewed", "lost"] as const) a.client.on(name, () => told.push(name));
    await a.outage(20_000);
    await a.advance(19_000);
    expect(told).toEqual(["suspended"]);
    expect(hold.isHeld).toBe(true);
    await a.advance(11_000);
    expect(hold.isHeld).toBe(true);
    expect(told).toContain("renewed");
    expect(told).not.toContain("lost");
    expect(await b.client.getLock("job").tryLock()).toBeNull();
    await hold.unlock();
    expect(await b.client.getLock("job").isLocked()).toBe(false);
  });

  test("longer than the lease: the hold is lost as unreachable, and another gets the lock meanwhile", async () => {
    const [a, b] = pair();
    const hold = await a.client.getLock("job").lock();
    await a.outage(60_000);
    const waiting = b.client.getLock("job").lock();
    await a.advance(29_000);
    expect(hold.isHeld).toBe(true);
    expect(await stateOf(waiting, b)).toBe("pending");
    await a.advance(1_000);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
    await b.advance(3_000);
    const next = await waiting;
    await a.advance(40_000);
    // The late release of the first hold does not end the second one.
    expect(next.isHeld).toBe(true);
    expect(await a.client.getLock("job").tryLock()).toBeNull();
    await next.unlock();
    expect(await a.client.getLock("job").tryLock()).toMatchObject({ isHeld: true });
  });

  test("a call in it rejects UNAVAILABLE after commandTimeout, and leaves nothing behind", async () => {
    const [a, b] = pair();
    await a.outage(10_000);
    const taking = a.client.getLock("job").lock();
    await a.advance(2_999);
    expect(await stateOf(taking, a)).toBe("pending");
    await a.advance(1);
    await expect(taking).rejects.toMatchObject({ code: "UNAVAILABLE", cause: expect.any(Error) });
    await a.advance(10_000);
    expect(await b.client.getLock("job").isLocked()).toBe(false);
  });

  test("an answer that is on its way gets lost, and the call counts once all the same", async () => {
    const [a, b] = pair();
    const taking = a.client.getLock("job").lock();
    await a.outage(1_000);
    expect(await stateOf(taking, a)).toBe("pending");
    expect(await b.client.getLock("job").isLocked()).toBe(true);
    await a.advance(1_000);
    const hold = await taking;
    expect(await a.client.getLock("job").getHoldCount({ owner: hold })).toBe(1);
    await hold.unlock();
    expect(await b.client.getLock("job").isLocked()).toBe(false);
  });

  test("a waiter survives it, and hears of releases again afterwards", async () => {
    const [a, b] = pair();
    const hold = await b.client.getLock("job").lock();
    const waiting = a.client.getLock("job").lock();
    await a.advance(1_000);
    await a.outage(15_000);
    await a.advance(15_000);
    expect(await stateOf(waiting, a)).toBe("pending");
    await hold.unlock();
    expect((await waiting).isHeld).toBe(true);
  });

  test("two overlap: the connection is back when both are over", async () => {
    const testClient = createTestClient();
    const { client, outage, advance } = testClient;
    await outage(5_000);
    await outage(9_000);
    await advance(6_000);
    const taking = client.getLock("job").lock();
    await advance(2_999);
    expect(await stateOf(taking, testClient)).toBe("pending");
    await advance(1);
    expect((await taking).isHeld).toBe(true);
  });

  test.each([0, -1, Number.NaN])("refuses %s", async (ms) => {
    const { outage } = createTestClient();
    await expect(outage(ms)).rejects.toThrow(RangeError);
  });
});

describe("semaphores and latches", () => {
  test("semaphores: permits are shared, waited for, and lapse with their lease", async () => {
    const [a, b] = pair();
    const [mine, theirs] = [a.client.getSemaphore("s"), b.client.getSemaphore("s")];
    await mine.trySetPermits(2);
    await mine.acquire(2);
    expect(await theirs.tryAcquire()).toBe(false);
    const waiting = theirs.tryAcquire(1, 5_000);
    await mine.release();
    expect(await waiting).toBe(true);
    const permits = a.client.getPermitExpirableSemaphore("p");
    await permits.trySetPermits(1);
    await permits.acquire({ lease: 2_000 });
    const next = b.client.getPermitExpirableSemaphore("p").acquire();
    await a.advance(1_900);
    expect(await stateOf(next, b)).toBe("pending");
    await a.advance(200);
    expect(await next).toMatch(/^[\da-f]{32}$/);
    await a.advance(HOUR);
    expect(await permits.availablePermits()).toBe(0);
  });

  test("latch: opens for all who wait, in any client", async () => {
    const [a, b] = pair();
    const latch = a.client.getCountDownLatch("start");
    await latch.trySetCount(2);
    const waiting = b.client.getCountDownLatch("start").await();
    const tooShort = a.client.getCountDownLatch("start").await(1_000);
    await latch.countDown();
    await a.advance(1_000);
    expect(await tooShort).toBe(false);
    expect(await stateOf(waiting, b)).toBe("pending");
    await latch.countDown();
    expect(await waiting).toBe(true);
  });
});
