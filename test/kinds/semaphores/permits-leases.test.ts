/** Leases of permits: they end by the server's clock, unless the watchdog or the user extends them. */
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { INTERNALS } from "../../../src/client-options.js";
import type { LockClientOptions } from "../../../src/index.js";
import { manyAtOnce, pause, useStage } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { Site } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

/** A watchdog's time-out: it renews every 1.5 seconds, so a process may stand still for three. */
const BRISK = 4_500;
const notOwner = (site: Site): object => ({ code: "NOT_OWNER", lockName: site.name });

/** Resolves when the server's clock has passed this time. */
async function untilPast(site: Site, time: number): Promise<void> {
  await until("the lease is over", async () => (await site.now()) > time, { every: 20 });
}

describe.concurrent("a lease that is over", () => {
  test("frees the permit, for whoever looks first", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.permits().trySetPermits(1);
    const id = await site.permits(0).acquire({ lease: 60_000 });
    expect(await site.permits(1).tryAcquire()).toBeNull();
    await site.permits(0).updateLeaseTime(id, 1_000);
    const expiry = (await site.entries()).get(id) ?? 0;
    await untilPast(site, expiry);
    const next = await site.permits(1).tryAcquire(0, 60_000);
    expect(next).toMatch(/^[0-9a-f]{32}$/);
    expect([...(await site.entries()).keys()]).toEqual([next]);
    await site.expectPermits(0, 1);
  });

  test("makes release NOT_OWNER and tryRelease false; the permit is free all the same, once", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(2);
    const lease = 60_000;
    const ids = [await site.permits().acquire({ lease }), await site.permits().acquire({ lease })];
    for (const id of ids) await site.permits().updateLeaseTime(id, 600);
    await untilPast(site, Math.max(...(await site.entries()).values()));
    await expect(site.permits().release(ids[0] ?? "")).rejects.toMatchObject(notOwner(site));
    expect(await site.permits().tryRelease(ids[1] ?? "")).toBe(false);
    expect(await site.permits().availablePermits()).toBe(2);
    await expect(site.permits().release(ids[0] ?? "")).rejects.toMatchObject(notOwner(site));
    await site.expectPermits(2, 0);
  });

  test("is decided by the server's clock, not by this machine's", async () => {
    const clock = { ...systemClock, wall: () => systemClock.wall() + 3_600_000 };
    await using site = await Site.of(stage, {}, { [INTERNALS]: { clock } } as LockClientOptions);
    await site.permits().trySetPermits(1);
    const id = await site.permits(1).acquire({ lease: 30_000 });
    expect(await site.permits(1).tryAcquire()).toBeNull();
    expect(await site.permits(1).acquiredPermits()).toBe(1);
    expect((await site.entries()).get(id)).toBeLessThanOrEqual((await site.now()) + 30_000);
  });
});

describe.concurrent("updateLeaseTime", () => {
  test("of a permit that the watchdog kept ends that: it lapses, and nothing is said to be lost", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: BRISK }, {});
    await site.permits().trySetPermits(1);
    const events = site.events();
    const id = await site.permits().acquire();
    await until("it is renewed", () => events.of("renewed").length > 0);
    await site.permits().updateLeaseTime(id, 2_000);
    const expiry = (await site.entries()).get(id) ?? 0;
    await untilPast(site, expiry);
    expect(await site.permits(1).tryAcquire()).not.toBeNull();
  });

  test("of a permit that the watchdog kept may outlast the watchdog's time", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: BRISK });
    await site.permits().trySetPermits(1);
    const id = await site.permits().acquire();
    await site.permits().updateLeaseTime(id, 60_000);
    const expiry = (await site.entries()).get(id);
    await pause(BRISK / 2); // longer than a round of the watchdog
    expect((await site.entries()).get(id)).toBe(expiry);
    await site.permits().release(id);
  });
});

describe.concurrent("the watchdog", () => {
  test("keeps a permit that was taken without a lease, and tells so", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: BRISK }, {});
    await site.permits().trySetPermits(1);
    const events = site.events();
    const id = await site.permits().acquire();
    for (const began = performance.now(); performance.now() - began < 1.5 * BRISK; await pause(100))
      expect(await site.permits(1).tryAcquire()).toBeNull();
    expect((await site.entries()).get(id)).toBeGreaterThan(await site.now());
    await until("it is renewed three times", () => events.of("renewed").length >= 3);
    expect(events.of("renewed")[0]).toMatchObject({ lockName: site.name, kind: "permits" });
    expect(events.of("lost")).toEqual([]);
    await site.permits().release(id);
    await site.expectPermits(1, 0);
  });

  test("leaves alone a permit that was taken with a lease", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: BRISK });
    await site.permits().trySetPermits(2);
    const kept = await site.permits().acquire();
    const leased = await site.permits().acquire({ lease: 60_000 });
    const events = site.events();
    const expiry = (await site.entries()).get(leased);
    await until("the other one is renewed", () => events.of("renewed").length >= 2);
    expect((await site.entries()).get(leased)).toBe(expiry);
    await site.permits().release(kept);
    await site.permits().release(leased);
  });

  test("stops when the permit is given back", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: BRISK });
    await site.permits().trySetPermits(2);
    await site.permits().release(await site.permits().acquire());
    const id = await site.permits().acquire();
    expect(await site.permits().tryRelease(id)).toBe(true);
    site.bed(0).proxy.clear();
    await pause(BRISK / 2); // longer than a round of the watchdog
    expect(site.asked()).toBe(0);
    expect(site.bed(0).troubles).toEqual([]);
  });

  test("tells no loss of a permit that is given back while its renewal is on its way", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: 6_000 });
    await site.permits().trySetPermits(2);
    const events = site.events();
    const id = await site.permits().acquire();
    site.bed(0).proxy.clear();
    await until("its renewal is sent", () => site.asked() > 0, { every: 1 });
    site.bed(0).proxy.delayReplies(300, site.own);
    await site.permits().release(id);
    await site.bed(0).redis.ping();
    expect(events.of("lost")).toEqual([]);
    await site.expectPermits(2, 0);
  });

  test("renews many permits by few commands", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: BRISK });
    const names = [site.name, ...Array.from({ length: 19 }, (_, i) => `${site.name}-${i}`)];
    const all = names.map((name) => site.client(0).getPermitExpirableSemaphore(name));
    await Promise.all(all.map((permits) => permits.trySetPermits(20)));
    const ids = await Promise.all(
      all.flatMap((permits) => Array.from({ length: 20 }, () => permits.acquire())),
    );
    expect(new Set(ids).size).toBe(400);
    const events = site.events();
    site.bed(0).proxy.clear();
    await until("all are renewed twice", () => events.of("renewed").length >= 40);
    expect(site.asked()).toBeLessThanOrEqual(60);
    for (const permits of all) expect(await permits.acquiredPermits()).toBe(20);
    expect(site.bed(0).troubles).toEqual([]);
  });
});
