/** A semaphore of expirable permits: how its permits stand on the server, and which clients may give them back. */
import { describe, expect, test } from "vitest";
import { manyAtOnce, useStage } from "../../faults/harness.js";
import { keyState } from "../../support/index.js";
import { hear } from "./hear.js";
import { NO_LEASE, Site, timeoutsOf, UNKNOWN } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

const notOwner = (site: Site): object => ({ code: "NOT_OWNER", lockName: site.name });

describe.concurrent("a permit", () => {
  test("is 32 hex digits to the user, and its 16 bytes in the sorted set, until its lease ends by the server's clock", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(3);
    const before = await site.now();
    const id = await site.permits().acquire({ lease: 50_000 });
    const after = await site.now();
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    const members = await site.redis.zrangeBuffer(timeoutsOf(site.name), "0", "-1");
    expect(members).toEqual([Buffer.from(id, "hex")]);
    const expiry = (await site.entries()).get(id) ?? 0;
    expect(expiry).toBeGreaterThanOrEqual(before + 50_000);
    expect(expiry).toBeLessThanOrEqual(after + 50_000);
    await site.expectPermits(2, 1);
  });

  test("without a lease lasts as long as the watchdog says, not for ever", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: 20_000 });
    await site.permits().trySetPermits(3);
    const before = await site.now();
    const ids = [await site.permits().acquire(), await site.permits().tryAcquire()];
    const after = await site.now();
    const entries = await site.entries();
    for (const id of ids) {
      expect(entries.get(id ?? "")).toBeGreaterThanOrEqual(before + 20_000);
      expect(entries.get(id ?? "")).toBeLessThanOrEqual(after + 20_000);
    }
  });

  test("has an id of its own, also of many that are asked for at once", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.permits().trySetPermits(60);
    const ids = await Promise.all(
      Array.from({ length: 60 }, (_, i) => site.permits(i % 2).acquire({ lease: 60_000 })),
    );
    expect(new Set(ids).size).toBe(60);
    expect(new Set((await site.entries()).keys())).toEqual(new Set(ids));
    expect(await site.permits().tryAcquire()).toBeNull();
    await site.expectPermits(0, 60);
  });

  test("may have the longest of leases", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(2);
    const id = await site.permits().acquire({ lease: Number.MAX_SAFE_INTEGER });
    expect(await site.permits().acquiredPermits()).toBe(1);
    expect((await site.entries()).get(id)).toBeGreaterThan((await site.now()) + 1e12);
    await site.permits().release(id);
    await site.expectPermits(2, 0);
  });

  test("is given back once", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(1);
    const id = await site.permits().acquire({ lease: 60_000 });
    await site.permits().release(id);
    await expect(site.permits().release(id)).rejects.toMatchObject(notOwner(site));
    expect(await site.permits().tryRelease(id)).toBe(false);
    const kept = await site.permits().acquire();
    expect(await site.permits().tryRelease(kept)).toBe(true);
    expect(await site.permits().tryRelease(kept)).toBe(false);
    await expect(site.permits().release(kept)).rejects.toMatchObject(notOwner(site));
    await site.expectPermits(1, 0);
  });

  test("may be given back by another client, in either case of its digits", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.permits().trySetPermits(2);
    const id = await site.permits(0).acquire({ lease: 60_000 });
    await site.permits(1).release(id);
    const other = await site.permits(0).acquire({ lease: 60_000 });
    expect(await site.permits(1).tryRelease(other)).toBe(true);
    await site.expectPermits(2, 0);
  });

  test("that nobody has: NOT_OWNER, and nothing changes", async () => {
    await using site = await Site.of(stage);
    await expect(site.permits().release(UNKNOWN)).rejects.toMatchObject(notOwner(site));
    await site.expectOnly(null);
    await site.permits().trySetPermits(3);
    const id = await site.permits().acquire({ lease: 60_000 });
    await expect(site.permits().release(UNKNOWN)).rejects.toMatchObject(notOwner(site));
    expect(await site.permits().tryRelease(UNKNOWN)).toBe(false);
    await expect(site.client(0).getPermitExpirableSemaphore("other").release(id)).rejects.toMatchObject({
      code: "NOT_OWNER",
      lockName: "other",
    });
    await site.expectPermits(2, 1);
  });
});

describe.concurrent("Redisson's permits", () => {
  test("without lease are never taken away, and may be given back by their hex id", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(2);
    await site.enter(UNKNOWN, NO_LEASE);
    expect(await site.permits().availablePermits()).toBe(2);
    expect(await site.permits().acquiredPermits()).toBe(1);
    await site.permits().release(UNKNOWN);
    await site.expectPermits(3, 0);
  });

  test("a name with braces keeps them", async () => {
    await using site = await Site.of(stage);
    const name = `{${site.name}}:slots`;
    const permits = site.client(0).getPermitExpirableSemaphore(name);
    await using heard = await hear(stage, `redisson_sc:${name}`);
    await permits.trySetPermits(2);
    const id = await permits.acquire({ lease: 60_000 });
    const state = await keyState(site.bed(0).observer, `${name}:timeout`);
    expect(state.type).toBe("zset");
    await permits.release(id);
    expect(await heard.messages()).toEqual(["2", "2"]);
  });
});
