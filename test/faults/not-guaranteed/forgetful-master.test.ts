/**
 * Produces what is not guaranteed: one master of a RedLock restarts empty within the lease, and votes a second time.
 * Then two owners hold the lock. A resource that remembers the highest token of each master refuses the first one.
 */
import { expect, test } from "vitest";
import type { FencedHold, LockClient, MultiHold } from "../../../src/index.js";
import { failure } from "../../contract/helpers.js";
import { LONG, Party, SOON, useMasters } from "../../entries/masters.js";
import { until } from "../../support/index.js";
import { failOnUnhandledRejections } from "../harness.js";
import { Resource } from "./resource.js";

const masters = await useMasters(3);
failOnUnhandledRejections();

const tokens = (hold: MultiHold | null) => (hold?.members ?? []) as FencedHold[];

test("a RedLock's master restarts empty: two hold the lock, the first is told by its next command, and the fence refuses its write [F40]", async () => {
  const make = (client: LockClient, name: string) => client.getFencedLock(name);
  await using one = await Party.of(masters, { make });
  await using two = await Party.of(masters, { make, name: one.name });
  await one.warmUp();
  one.proxy(2).blackhole();
  const first = await one.lock.lock({ lease: LONG });
  await masters[1]?.restart();
  await until("it is back", () => two.redises.every(({ status }) => status === "ready"), { timeout: SOON });
  const second = await until("it is granted", () => two.lock.tryLock(0, LONG));
  expect([first.isHeld, second?.isHeld]).toEqual([true, true]);

  const resource = new Resource();
  const [first0, first1] = tokens(first);
  const [second1, second2] = tokens(second);
  expect(resource.write("first", first0, first1)).toBe(true);
  expect(resource.write("second", undefined, second1, second2)).toBe(true);
  expect(resource.write("first, late", first0, first1)).toBe(false);
  expect([resource.unfenced, resource.fenced]).toEqual(["first, late", "second"]);
  expect(await failure(first.unlock())).toMatchObject({ code: "LOCK_LOST" });
  expect([first.isHeld, second?.isHeld]).toEqual([false, true]);
  await second?.unlock();
  one.proxy(2).restore();
});
