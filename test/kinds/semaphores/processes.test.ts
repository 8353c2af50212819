/** Contract section 5: several processes on one semaphore or latch, and processes that die. */
import { expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { soon, useStage } from "../../faults/harness.js";
import { forTest, SLACK, startWorker, until, type Worker } from "../../support/index.js";
import type { Start } from "../lock-worker.js";
import { Site } from "./helpers.js";
import { NEVER } from "./place.js";

const stage = await useStage("standalone");
const file = bundledWorker("../kinds/lock-worker.ts");
/** The watchdog's time-out of a process that is killed. */
const WATCHDOG = 4_500;

async function start({ name }: Site): Promise<Worker> {
  const worker = forTest(await startWorker(file()));
  const options = { pollCap: NEVER, watchdogTimeout: WATCHDOG };
  await worker.request("start", { port: stage.server.port, name, options } satisfies Start);
  return worker;
}

test("permits that a process that dies had kept come back within its watchdogTimeout, leased ones with their lease [§5 permits]", async () => {
  await using site = await Site.of(stage, { pollCap: NEVER });
  await site.permits().trySetPermits(4);
  const worker = await start(site);
  await worker.request("permits", { count: 3 });
  const [leased = ""] = await worker.request<string[]>("permits", { count: 1, lease: 60_000 });
  expect(await site.counts()).toEqual(["0", 4]);
  const waiting = await site.parked(0, () => site.permits().acquire({ lease: NEVER }));
  await worker.kill("SIGKILL");
  const killed = performance.now();
  await soon(waiting);
  expect(performance.now() - killed).toBeLessThan(WATCHDOG + SLACK);
  await until("the others are back too", async () => (await site.permits().availablePermits()) === 2);
  await site.permits().release(leased); // any client that knows the id may do this
  expect(await site.counts()).toEqual(["3", 1]);
});
