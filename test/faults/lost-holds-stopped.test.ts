/**
 * Processes that stop, stall or die while they hold a lock: they notice it, or others get the lock when the lease ends.
 */
import { describe, expect, test } from "vitest";
import { PATIENCE, startWorker } from "../support/index.js";
import { PLAIN } from "../support/place/kinds.js";
import { bundledWorker } from "./build-worker.js";
import { manyAtOnce, useStage } from "./harness.js";
import type { Look, Stall } from "./holder-worker.js";
import { untilFree } from "./remains.js";

const worker = bundledWorker("./holder-worker.ts");

manyAtOnce();
const stage = await useStage("standalone");

/** Starts a process that holds the lock of a bed. */
async function holder(watchdogTimeout: number) {
  // The poll is so rare that it serves no waiter.
  const bed = await stage.bed({ client: { pollCap: 3 * PATIENCE } });
  const process = await startWorker(worker());
  const ownerId = await process.request<string>("take", {
    port: stage.server.port,
    name: bed.name,
    kind: PLAIN.name,
    watchdogTimeout,
  });
  const dispose = async (): Promise<void> => {
    await process.kill();
    await bed.dispose();
  };
  return { bed, process, ownerId, [Symbol.asyncDispose]: dispose };
}

// Only one kind, because only the clock of the process matters here.
describe.concurrent("an event loop", () => {
  test("stalled beyond the lease: not held on the first line after, the signal follows [F16]", async () => {
    await using it = await holder(1_500);
    const {
      first,
      afterMicrotask,
      later,
      reason,
      lostEvents: lost,
    } = await it.process.request<Stall>("stall", 2_000);
    expect(first).toMatchObject({ isHeld: false, thrown: "LOCK_LOST", remaining: 0 });
    expect(afterMicrotask).toMatchObject({ isHeld: false, thrown: "LOCK_LOST" });
    expect(later).toMatchObject({ isHeld: false, aborted: true, thrown: "LOCK_LOST" });
    // The stall may have begun while a renewal was on its way.
    expect(reason).toBeOneOf(["expired", "unreachable"]);
    expect(lost).toBe(1);
    expect(await it.process.request("unlock")).toBe("LOCK_LOST");
    await untilFree(it.bed);
    expect(await it.process.request("unhandled")).toEqual([]);
  });
});

describe.concurrent("a lock", () => {
  test("process stopped beyond the lease: another gets the lock, and the resumed one knows it lost it [F17]", async () => {
    await using it = await holder(1_200);
    it.process.pause();
    const theirs = await it.bed.rival().lock({ wait: PATIENCE });
    it.process.resume();
    const seen = await it.process.request<Look>("look");
    expect(seen).toMatchObject({ isHeld: false, thrown: "LOCK_LOST" });
    expect(await it.process.request("unlock")).toBe("LOCK_LOST");
    expect(theirs.isHeld).toBe(true);
    expect((await it.bed.keys())[it.bed.name]?.value).toEqual(PLAIN.fields(theirs.ownerId, 1));
    await theirs.unlock();
    expect(await it.process.request("unhandled")).toEqual([]);
  });
});
