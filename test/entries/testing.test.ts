/** Locks in tests without Redis: a real client on a server in memory, whose time passes only when a test says so. */
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestClient, createTestServer, type TestClient } from "../../src/entries/testing.js";
import { type Lock, type LockClient, type LossReason, MultiLock } from "../../src/index.js";
import { failure, watch } from "../contract/helpers.js";
import { until } from "../support/index.js";

const HOUR = 3_600_000;

function pair(): [TestClient, TestClient] {
  const server = createTestServer();
  return [createTestClient({ server }), createTestClient({ server })];
}

/** What has come of a call when all work is done that needs no time: "pending", "resolved", or its error's code. */
async function outcomeOf(work: Promise<unknown>, { settle }: TestClient): Promise<unknown> {
  const watched = watch(work);
  await settle();
  return watched.state === "resolved" ? "resolved" : watched.outcome;
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
  test("of one server exclude each other and see each other's locks, those of two servers do not", async () => {
    const [a, b] = pair();
    const hold = await a.client.getFencedLock("job").lock();
    expect(await b.client.getFencedLock("job").tryLock()).toBeNull();
    expect(await createTestClient().client.getLock("job").tryLock()).toMatchObject({ isHeld: true });
    const seen: unknown[] = [];
    for await (const { name, kind, holders } of b.client.list())
      seen.push(name, kind, ...holders.map(({ ownerId }) => ownerId));
    expect(seen).toEqual(["job", "fenced", hold.ownerId]);
    const waiting = b.client.getFencedLock("job").lock();
    expect(await outcomeOf(waiting, b)).toBe("pending");
    await hold.unlock();
    expect((await waiting).token).toBe(hold.token + 1n);
  });

  test("that are closed leave neither locks nor timers", async () => {
    const [a, b] = pair();
    const hold = await a.client.getLock("job").lock();
    const waiting = b.client.getLock("job").lock();
    const ended = outcomeOf(waiting, b);
    await b.client.close();
    expect(await ended).toBe("CLIENT_CLOSED");
    await a.client.close({ timeout: 0 });
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    await b.advance(HOUR);
  });
});

test("who forgets to let time pass is warned once, after two seconds of real time in which something waits for it [B283]", async () => {
  const { client, advance } = createTestClient();
  const warnings: string[] = [];
  const hear = ({ code = "" }: NodeJS.ErrnoException) => {
    if (code === "HOLDFAST_TIME_STANDS_STILL") warnings.push(code);
  };
  process.on("warning", hear);
  onTestFinished(() => void process.off("warning", hear));
  await client.getLock("job").lock();
  const waiting = failure(client.getLock("job").lock({ wait: 60_000 }));
  for (let i = 0; i < 5; i++) {
    await advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  expect(warnings).toEqual([]);
  await until("it is warned", () => warnings.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(warnings).toHaveLength(1);
  await advance(60_000);
  expect(await waiting).toMatchObject({ code: "WAIT_TIMEOUT" });
});

const asOptions = (given: unknown) => () => createTestClient(given as object);
const asTime = (call: "advance" | "outage", ms: unknown) => () => createTestClient()[call](ms as number);

test.each<[what: string, call: () => unknown, error: Error | typeof TypeError]>([
  ...[1, true, null, "x", [], () => {}, Symbol("s")].map((given): [string, () => unknown, Error] => {
    const told = Array.isArray(given)
      ? "an instance of Array"
      : typeof given === "function"
        ? "a function"
        : String(given);
    const text = typeof given === "string" ? '"x"' : told;
    return [
      text,
      asOptions(given),
      new TypeError(`createTestClient: options must be an object, not ${text}`),
    ];
  }),
  ["a Map", asOptions(new Map()), TypeError],
  ["a list of servers", asOptions([createTestServer()]), TypeError],
  ["a server in the place of options", asOptions(createTestServer()), TypeError],
  ["an unknown option", asOptions({ colour: "red" }), TypeError],
  ["a server that is none", asOptions({ server: {} }), TypeError],
  ["a watchdogTimeout of 1 ms", asOptions({ watchdogTimeout: 1 }), RangeError],
  ...[-1, Number.NaN, Number.POSITIVE_INFINITY, "1000"].map(
    (ms): [string, () => unknown, typeof TypeError] => [`advance(${ms})`, asTime("advance", ms), RangeError],
  ),
  ...[0, -1, Number.NaN].map((ms): [string, () => unknown, typeof TypeError] => [
    `outage(${ms})`,
    asTime("outage", ms),
    RangeError,
  ]),
  ["loseAll for no reason", () => createTestClient().loseAll("gone" as LossReason), TypeError],
])("%s is refused [B267]", async (_what, call, error) => {
  await expect(async () => call()).rejects.toThrow(error);
});

describe("advance", () => {
  test("moves one clock for all clients of a server, and nothing else moves it", async () => {
    const server = createTestServer();
    const [a, b] = [createTestClient({ server }), createTestClient({ server })];
    const before = server.now;
    await Promise.all([a.advance(1_000), b.advance(500), a.advance(0)]);
    expect(server.now).toBe(before + 1_500);
    const hold = await b.client.getLock("job").lock({ lease: 5 });
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect([hold.acquiredAt, hold.isHeld]).toEqual([server.now, true]);
  });

  test.each([3_000, 6_500, 10_000, 30_000])(
    "goes on at times that are no whole milliseconds, and renews a lease of %d ms",
    async (watchdogTimeout) => {
      for (let fraction = 0; fraction < 1; fraction += 0.3) {
        const { client, advance } = createTestClient({ watchdogTimeout });
        let renewed = 0;
        client.on("renewed", () => renewed++);
        await advance(fraction);
        const hold = await client.getLock("job").lock();
        await advance(60_000);
        expect(hold.isHeld).toBe(true);
        expect(renewed).toBeGreaterThan(60_000 / watchdogTimeout);
      }
    },
  );

  type Get = (client: LockClient) => Lock | MultiLock;
  const lock: Get = (client) => client.getLock("job");
  const write: Get = (client) => client.getReadWriteLock("job").writeLock();
  test.each<[what: string, held: Get, wanted: Get]>([
    ["a lock", lock, lock],
    ["a fair lock", (client) => client.getFairLock("job"), (client) => client.getFairLock("job")],
    ["a read side", write, (client) => client.getReadWriteLock("job").readLock()],
    ["a write side", write, write],
    ["a group", lock, (client) => new MultiLock(client.getLock("other"), client.getLock("job"))],
  ])(
    "to the end of a dead holder's TTL gives the waiter %s then, and no sooner [B265]",
    async (_, held, wanted) => {
      const server = createTestServer();
      const [a, b] = [createTestClient({ server, watchdogTimeout: 10_000 }), createTestClient({ server })];
      await held(a.client).lock();
      await a.outage(HOUR);
      const waiting = wanted(b.client).lock();
      await b.advance(9_999);
      expect(await outcomeOf(waiting, b)).toBe("pending");
      await b.advance(1);
      expect(await outcomeOf(waiting, b)).toBe("resolved");
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
      expect(await outcomeOf(waiting, b)).toBe("resolved");
      expect(await waiting).not.toBe(id);
      await permits.release(await waiting);
    }
  });

  test("leaves time to listen to what rejects meanwhile, however many answers come [B187]", async () => {
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
    await b.outage(60_000);
    const unanswered = b.client.getSemaphore("s").acquire();
    await b.advance(60_000);
    await expect(unanswered).rejects.toMatchObject({ code: "UNAVAILABLE" });
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
    const measured = async () => {
      const granted = server.now;
      for (let i = 0; i < times; i++) await work();
      return server.now - granted;
    };
    const run = b.client.getLock("job").run(measured, { lease: 5_000 });
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

  test("is not needed for the event loop to turn, whatever a test asks for", async () => {
    const { client } = createTestClient();
    let turned = false;
    setTimeout(() => {
      turned = true;
    }, 1);
    while (!turned) expect(await client.getSemaphore("s").availablePermits()).toBe(0);
  });
});

describe("loseAll", () => {
  test.each<LossReason>(["forced", "taken", "expired", "unreachable", "closed"])(
    "ends every hold of its client at once, and what is held later is not lost: reason %s",
    async (reason) => {
      const [a, b] = pair();
      const holds = await Promise.all([
        a.client.getLock("one").lock(),
        a.client.getFairLock("two").lock({ lease: HOUR }),
        a.client.getReadWriteLock("three").readLock().lock(),
        new MultiLock(a.client.getLock("four"), a.client.getLock("five")).lock(),
      ]);
      const permits = a.client.getPermitExpirableSemaphore("permits");
      await permits.trySetPermits(1);
      const id = await permits.acquire();
      const kept = await b.client.getLock("six").lock();
      const told = new Set<unknown>();
      a.client.on("lost", ({ lockName, reason: why }) => told.add(`${lockName} ${why}`));
      const run = a.client.getLock("run").run(async ({ signal }) => {
        const losing = a.loseAll(reason);
        expect([signal, ...holds.map((hold) => hold.signal)].every(({ aborted }) => aborted)).toBe(true);
        await losing;
        return "in vain";
      });
      await expect(run).rejects.toMatchObject({ code: "LOCK_LOST", reason, result: "in vain" });
      for (const hold of holds) {
        expect(hold.signal.reason).toMatchObject({ reason });
        // A close has told the loss already, so nothing rejects later.
        if (reason === "closed") await hold.unlock();
        else await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason });
      }
      for (const name of ["one", "two", "three", "run"]) expect(told).toContain(`${name} ${reason}`);
      if (reason !== "closed") await expect(permits.release(id)).rejects.toMatchObject({ code: "NOT_OWNER" });
      // What is lost is given back on the server.
      expect(await permits.availablePermits()).toBe(1);
      expect([kept.isHeld, (await b.client.getLock("one").lock()).isHeld]).toEqual([true, true]);
      expect((await a.client.getLock("four").lock()).isHeld).toBe(true);
    },
  );
});

describe("outage", () => {
  test("that is shorter than the lease suspends the hold, which goes on", async () => {
    const [a, b] = pair();
    const hold = await a.client.getLock("job").lock();
    const told = new Set<string>();
    for (const name of ["suspended", "renewed", "lost"] as const) a.client.on(name, () => told.add(name));
    await a.outage(20_000);
    await a.advance(19_000);
    expect([...told]).toEqual(["suspended"]);
    await a.advance(11_000);
    expect([...told]).toEqual(["suspended", "renewed"]);
    expect(await b.client.getLock("job").tryLock()).toBeNull();
    await hold.unlock();
    expect(await b.client.getLock("job").isLocked()).toBe(false);
  });

  test("rejects a call in it UNAVAILABLE after commandTimeout, and lets a waiter wait on", async () => {
    const [a, b] = pair();
    const hold = await b.client.getLock("job").lock();
    const waiting = a.client.getLock("job").lock();
    await a.settle();
    await a.outage(10_000);
    const taking = a.client.getLock("other").lock();
    await a.advance(2_999);
    expect(await outcomeOf(taking, a)).toBe("pending");
    await a.advance(1);
    await expect(taking).rejects.toMatchObject({ code: "UNAVAILABLE", cause: expect.any(Error) });
    await a.advance(10_000);
    expect(await b.client.getLock("other").isLocked()).toBe(false);
    await hold.unlock();
    expect((await waiting).isHeld).toBe(true);
  });

  test("loses an answer that is on its way, and the call counts once all the same; the last of two ends it", async () => {
    const [a, b] = pair();
    const taking = a.client.getLock("job").lock();
    await a.outage(1_000);
    await a.outage(2_000);
    await a.advance(1_999);
    expect(await outcomeOf(taking, a)).toBe("pending");
    expect(await b.client.getLock("job").isLocked()).toBe(true);
    await a.advance(1);
    const hold = await taking;
    expect(await a.client.getLock("job").getHoldCount({ owner: hold })).toBe(1);
    await hold.unlock();
    expect(await b.client.getLock("job").isLocked()).toBe(false);
  });
});
