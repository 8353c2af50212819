/**
 * Produces what is not guaranteed: a holder checks its lock, is paused for longer than its lease, and then writes. No
 * lock can prevent that write; a resource that compares tokens refuses it.
 */
import { expect, test } from "vitest";
import { LockClient } from "../../../src/index.js";
import { forFile, PATIENCE, startRedis, startWorker, UNHURRIED, until } from "../../support/index.js";
import { bundledWorker } from "../build-worker.js";
import { failOnUnhandledRejections, freshName } from "../harness.js";
import type { Look } from "./holder-worker.js";
import { Resource } from "./resource.js";

const bundle = bundledWorker("./not-guaranteed/holder-worker.ts");

failOnUnhandledRejections();
const server = await forFile(startRedis());

test("the late write of a paused holder arrives; the fence refuses it, and the holder is told [F17]", async () => {
  await using client = new LockClient(server.connect(), UNHURRIED);
  await using worker = await startWorker(bundle());
  const resource = new Resource();
  const name = freshName();
  const token = await worker.request<bigint>("take", { port: server.port, name, watchdogTimeout: 3_000 });
  worker.pause();
  const next = await client.getFencedLock(name).lock({ wait: PATIENCE });
  expect(resource.write("next", next)).toBe(true);
  worker.resume();

  // The write that the process was about to send when it was paused.
  expect(resource.write("paused", { token })).toBe(false);
  expect([resource.unfenced, resource.fenced]).toEqual(["paused", "next"]);
  const look = () => worker.request<Look>("look");
  expect(await look()).toMatchObject({ isHeld: false, thrown: "LOCK_LOST" });
  await until("its signal says so", async () => (await look()).aborted);
  expect(await worker.request("unlock")).toBe("LOCK_LOST");
  expect(next.isHeld).toBe(true);
  await next.unlock();
});
