/** A writer goes on as a reader without a gap: waiting readers get the lock at once, writers stay out. */
import { expect, test } from "vitest";
import { bundledWorker } from "../faults/build-worker.js";
import { SOON, useStage } from "../faults/harness.js";
import { startWorker, until } from "../support/index.js";
import { NEVER, Scene } from "./helpers.js";
import type { Start } from "./lock-worker.js";

const stage = await useStage("standalone");
const worker = bundledWorker("../kinds/lock-worker.ts");

const patient = { pollCap: NEVER };

test("a downgrade wakes the readers of another process at once [F36]", async () => {
  await using scene = await Scene.of(stage, patient);
  await using reader = await startWorker(worker());
  await reader.request("start", {
    port: scene.bed(0).proxy.port,
    name: scene.name,
    side: "read",
    options: patient,
  } satisfies Start);
  const write = await scene.write(0).lock();
  const before = scene.asked(0);
  let granted = 0;
  reader.on(({ type }) => {
    if (type === "granted") granted++;
  });
  const calls = [1, 2, 3].map((id) => reader.request("take", { id: String(id) }));
  await until("they wait", async () => scene.asked(0) >= before + 2 && (await scene.listeners()) === 1);
  const read = await scene.read(0).lock({ owner: write });
  expect(granted).toBe(0);
  await write.unlock();
  const begun = performance.now();
  await until("all read", () => granted === 3, { timeout: SOON });
  expect(performance.now() - begun).toBeLessThan(NEVER / 3);
  expect(read.isHeld).toBe(true);
  await Promise.all(calls);
  for (const id of ["1", "2", "3"]) expect(await reader.request("unlock", id)).toBe("unlocked");
  await read.unlock();
  await scene.expectNothingLeft();
});
