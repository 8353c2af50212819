/** Permits that the watchdog cannot keep are reported by `lost`, with their ids; permits of a dead process come back. */
import { describe, expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { manyAtOnce, SOON, Stage, soon, useStage } from "../../faults/harness.js";
import { SLACK, startWorker, until } from "../../support/index.js";
import { NEVER, Site, timeoutsOf } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");
const worker = bundledWorker("../kinds/semaphores/permit-worker.ts");

const BRISK = 4_500;

describe.concurrent("a kept permit that is lost", () => {
  test("because somebody took it away is announced at the next renewal; the others are kept", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: BRISK });
    await site.permits().trySetPermits(3);
    const events = site.events();
    const [a, b, c] = [
      await site.permits().acquire(),
      await site.permits().acquire(),
      await site.permits().acquire(),
    ];
    await site.redis.zrem(timeoutsOf(site.name), Buffer.from(b, "hex"));
    await until("the loss is told", () => events.of("lost").length > 0);
    expect(events.of("lost")).toEqual([
      expect.objectContaining({ lockName: site.name, kind: "permits", permitId: b, reason: "expired" }),
    ]);
    await until("the others are renewed", () => events.of("renewed").length >= 2);
    expect([...(await site.entries()).keys()].sort()).toEqual([a, c].sort());
    expect(events.of("lost")).toHaveLength(1);
    await expect(site.permits().release(b)).rejects.toMatchObject({ lockName: site.name });
    expect(await site.permits().tryRelease(b)).toBe(false);
    await site.permits().release(a);
    await site.permits().release(c);
  });

  test("because all keys were deleted", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: BRISK });
    await site.permits().trySetPermits(3);
    const events = site.events();
    const ids = [await site.permits().acquire(), await site.permits().acquire()];
    await site.redis.del(site.name, timeoutsOf(site.name));
    await until("the losses are told", () => events.of("lost").length >= 2);
    expect(new Set(events.of("lost").map(({ permitId }) => permitId))).toEqual(new Set(ids));
    expect(events.of("lost")).toHaveLength(2);
    await site.expectOnly(null); // a renewal does not create the permit anew
  });

  test("because Redis gave no answer until its deadline", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { watchdogTimeout: BRISK, commandTimeout: 1_500 });
    await site.permits().trySetPermits(3);
    const events = site.events();
    const kept = await site.permits().acquire();
    await site.permits().acquire({ lease: 60_000 });
    own.server.pause();
    const began = performance.now();
    await until("the loss is told", () => events.of("lost").length > 0, { timeout: SOON });
    expect(performance.now() - began).toBeLessThan(BRISK + SLACK);
    const loss = { lockName: site.name, kind: "permits", permitId: kept, reason: "unreachable" };
    expect(events.of("lost")).toMatchObject([loss]);
    expect(events.of("suspended").length).toBeGreaterThan(0);
    own.server.resume();
    await until("it is free again", async () => (await site.permits().availablePermits()) === 2);
    await site.expectPermits(2, 1);
    expect(events.of("lost")).toHaveLength(1);
  });

  test("is not announced when an outage ends in time", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { watchdogTimeout: 9_000, commandTimeout: 1_000 });
    await site.permits().trySetPermits(3);
    const events = site.events();
    const id = await site.permits().acquire();
    await until("a renewal", () => events.of("renewed").length > 0);
    own.server.pause();
    await until("a renewal failed", () => events.of("suspended").length > 0);
    expect(events.of("suspended")[0]).toMatchObject({ lockName: site.name, kind: "permits" });
    own.server.resume();
    const before = events.of("renewed").length;
    await until("it goes on", () => events.of("renewed").length > before);
    expect(events.of("lost")).toEqual([]);
    await site.permits().release(id);
    await site.expectPermits(3, 0);
  });
});

describe.concurrent("a process that dies", () => {
  test("gives its kept permits back within the watchdogTimeout, its leased ones at the end of the lease", async () => {
    await using site = await Site.of(stage, { pollCap: NEVER });
    await site.permits().trySetPermits(4);
    const child = await startWorker(worker());
    await child.request("start", {
      port: stage.server.port,
      name: site.name,
      options: { watchdogTimeout: BRISK },
    });
    const kept = await child.request<string[]>("take", { count: 3 });
    const [leased = ""] = await child.request<string[]>("take", { count: 1, lease: 60_000 });
    expect(new Set([...kept, leased])).toEqual(new Set((await site.entries()).keys()));
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: NEVER }));
    await child.kill("SIGKILL");
    const began = performance.now();
    const id = await soon(waiting);
    expect(performance.now() - began).toBeLessThan(BRISK + SLACK);
    await until("the others are back too", async () => (await site.permits().availablePermits()) === 2);
    expect(new Set((await site.entries()).keys())).toEqual(new Set([id, leased]));
    await site.permits().release(leased); // any client that knows the id may do this
    await site.expectPermits(3, 1);
  });

  test("a permit with a lease may be handed to another process", async () => {
    await using site = await Site.of(stage, { pollCap: NEVER });
    await site.permits().trySetPermits(1);
    await using child = await startWorker(worker());
    await child.request("start", { port: stage.server.port, name: site.name });
    const [id = ""] = await child.request<string[]>("take", { count: 1, lease: 60_000 });
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: 60_000 }));
    await site.permits().updateLeaseTime(id, 90_000);
    await site.permits().release(id);
    const mine = await soon(waiting);
    expect(await child.request("release", mine)).toBe("released");
    expect(await child.request("release", mine)).toBe("NOT_OWNER");
    await site.expectPermits(1, 0);
  });
});
