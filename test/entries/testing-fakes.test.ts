import { describe, expect, onTestFinished, test, vi } from "vitest";
import * as entry from "../../src/entries/testing.js";
import { Sandbox } from "../faults/fakes/sandbox.js";
import { fakeEverything } from "../faults/fakes/vitest-fakes.js";

type Entry = Pick<typeof entry, "createTestClient" | "createTestServer">;

/** Milliseconds, longer than any lease and outage needs. */
const LONG = 120_000;

/** Does everything that takes time, or another turn of the event loop. */
async function expectWork({ createTestClient, createTestServer }: Entry): Promise<void> {
  const server = createTestServer();
  const [a, b] = [createTestClient({ server }), createTestClient({ server })];
  await a.client.ready();
  const hold = await a.client.getLock("job").lock();
  const tooShort = b.client.getLock("job").tryLock(5_000);
  await b.advance(5_000);
  expect(await tooShort).toBeNull();
  const waiting = b.client.getLock("job").lock({ lease: 10_000 });
  await a.advance(LONG);
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
  const next = await waiting;
  await b.advance(10_000);
  expect(next.signal.aborted).toBe(true);
  const last = await a.client.getReadWriteLock("doc").writeLock().lock();
  await a.outage(LONG);
  await a.advance(30_000);
  expect(last.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
  await a.advance(LONG);
  const again = await a.client.getLock("job").lock();
  await a.loseAll("taken");
  expect(again.isHeld).toBe(false);
  await a.settle();
  await Promise.all([a.client.close(), b.client.close()]);
}

describe("everything works", () => {
  test("under all fakes of Vitest", async () => {
    fakeEverything();
    onTestFinished(() => void vi.useRealTimers());
    await expectWork(entry);
  });

  test("under fakes of a realm of its own, as Jest has them, put in place after the import", async () => {
    const sandbox = new Sandbox();
    const library = await sandbox.load<Entry>("entries/testing.ts");
    sandbox.freeze();
    await expectWork(library);
  });

  test.runIf("getBuiltinModule" in process)("under such fakes put in place before the import", async () => {
    const sandbox = new Sandbox();
    sandbox.freeze();
    await expectWork(await sandbox.load<Entry>("entries/testing.ts"));
  });
});

test("Vitest's fakes and the clock of the server have a time of their own, whichever is moved", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { client, advance } = entry.createTestClient();
  const hold = await client.getLock("job").lock({ lease: 10_000 });
  const later = vi.fn();
  setTimeout(later, 5_000);
  await vi.advanceTimersByTimeAsync(LONG);
  expect(later).toHaveBeenCalledOnce();
  expect(hold.isHeld).toBe(true);
  const before = Date.now();
  await advance(10_000);
  expect([hold.isHeld, Date.now()]).toEqual([false, before]);
});
