/**
 * `holdfast/testing` under the fake timers of test frameworks: no call waits for them, and they do not move its clock.
 */
import { mock } from "node:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as entry from "../../src/entries/testing.js";
import { Sandbox } from "../fakes/sandbox.js";
import { fakeEverything } from "../fakes/vitest-fakes.js";

type Entry = Pick<typeof entry, "createTestClient" | "createTestServer">;

const HOUR = 3_600_000;

/** Does everything that takes time, or another turn of the event loop. */
async function expectWork({ createTestClient, createTestServer }: Entry): Promise<void> {
  const server = createTestServer();
  const [a, b] = [createTestClient({ server }), createTestClient({ server })];
  await a.client.ready();
  const hold = await a.client.getLock("job").lock();
  expect(await b.client.getLock("job").tryLock()).toBeNull();
  const tooShort = b.client.getFairLock("job").tryLock(5_000);
  await b.advance(5_000);
  expect(await tooShort).toBeNull();
  const waiting = b.client.getLock("job").lock({ lease: 10_000 });
  await a.advance(HOUR);
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
  const next = await waiting;
  await b.advance(10_000);
  expect(next.signal.aborted).toBe(true);
  const semaphore = a.client.getSemaphore("s");
  await semaphore.trySetPermits(1);
  await semaphore.acquire();
  const permit = b.client.getSemaphore("s").acquire();
  await semaphore.release();
  await permit;
  const last = await a.client.getReadWriteLock("doc").writeLock().lock();
  await a.outage(HOUR);
  await a.advance(30_000);
  expect(last.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
  await a.advance(HOUR);
  const again = await a.client.getLock("job").lock();
  await a.loseAll("taken");
  expect(again.isHeld).toBe(false);
  await a.settle();
  await Promise.all([a.client.close(), b.client.close()]);
}

describe("Vitest's fakes", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test("of all that they replace: everything works", async () => {
    fakeEverything();
    await expectWork(entry);
  });

  test("have a time of their own, whichever is moved", async () => {
    vi.useFakeTimers();
    const { client, advance } = entry.createTestClient();
    const hold = await client.getLock("job").lock({ lease: 10_000 });
    const later = vi.fn();
    setTimeout(later, 5_000);
    await vi.advanceTimersByTimeAsync(HOUR);
    expect(later).toHaveBeenCalledOnce();
    expect(hold.isHeld).toBe(true);
    const before = Date.now();
    await advance(10_000);
    expect(hold.isHeld).toBe(false);
    expect(Date.now()).toBe(before);
  });
});

describe("node:test's fakes", () => {
  afterEach(() => {
    mock.timers.reset();
  });

  test("of all that they replace: everything works", async () => {
    mock.timers.enable();
    const later = mock.fn();
    setTimeout(later, 1_000);
    await expectWork(entry);
    expect(later.mock.callCount()).toBe(0);
    mock.timers.tick(1_000);
    expect(later.mock.callCount()).toBe(1);
  });
});

describe("fakes of a realm of its own, as Jest has them", () => {
  test("put in place after the import: everything works", async () => {
    const sandbox = new Sandbox();
    const library = await sandbox.load<Entry>("entries/testing.ts");
    sandbox.freeze();
    await expectWork(library);
  });

  test.runIf("getBuiltinModule" in process)("put in place before the import: everything works", async () => {
    const sandbox = new Sandbox();
    sandbox.freeze();
    await expectWork(await sandbox.load<Entry>("entries/testing.ts"));
  });
});
