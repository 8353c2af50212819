/** Several processes on one semaphore or latch: one message serves all waiters that it can, promptly. */
import { expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { SOON, soon, useStage, watch } from "../../faults/harness.js";
import { startWorker, until, type Worker } from "../../support/index.js";
import { NEVER, Site } from "./helpers.js";

const stage = await useStage("standalone");
const file = bundledWorker("../kinds/semaphores/permit-worker.ts");

async function workers(site: Site, count: number): Promise<Worker[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const worker = await startWorker(file());
      const options = { pollCap: NEVER };
      await worker.request("start", { port: stage.server.port, name: site.name, options });
      return worker;
    }),
  );
}

test("one release of many permits serves the waiters of all processes", async () => {
  await using site = await Site.of(stage);
  const all = await workers(site, 3);
  try {
    await site.semaphore().trySetPermits(0);
    const calls = all.map((worker) => watch(worker.request("acquire", 7)));
    await until("all listen", async () => (await site.listeners()) === 3);
    const began = performance.now();
    await site.semaphore().release(21);
    for (const call of calls) await soon(call);
    expect(performance.now() - began).toBeLessThan(SOON);
    await site.expectOnly("0");
  } finally {
    for (const worker of all) await worker.kill();
  }
});

test("the last countDown opens the latch for all processes", async () => {
  await using site = await Site.of(stage);
  const all = await workers(site, 3);
  try {
    await site.latch().trySetCount(3);
    const calls = all.map((worker) => watch(worker.request("await")));
    await until("all listen", async () => (await site.listeners()) === 3);
    for (const worker of all) await worker.request("countDown");
    for (const call of calls) expect(await soon(call)).toBe(true);
    await site.expectOnly(null);
  } finally {
    for (const worker of all) await worker.kill();
  }
});

test("a process that dies with permits of a plain semaphore takes them along; waiting, it takes nothing", async () => {
  await using site = await Site.of(stage);
  const [worker] = await workers(site, 1);
  await site.semaphore().trySetPermits(2);
  await worker?.request("acquire", 2);
  const waiting = watch(worker?.request("acquire", 1) ?? Promise.resolve());
  await until("it waits", async () => (await site.listeners()) === 1);
  await worker?.kill("SIGKILL");
  await until("the call is over", () => waiting.state === "rejected");
  await site.semaphore().release(3);
  await site.expectOnly("3");
});
