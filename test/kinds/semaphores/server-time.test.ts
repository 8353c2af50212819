/** A call's time limit is set by the clock of the master that runs it, whatever the clock of this machine says. */
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { INTERNALS } from "../../../src/client-options.js";
import { LockClient } from "../../../src/index.js";
import { freshName, manyAtOnce, script, useStage } from "../../faults/harness.js";
import { type FaultProxy, startClusterProxy } from "../../support/index.js";
import { hear } from "./hear.js";
import { permitChannel, Site, timeoutsOf } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");

const HOUR = 3_600_000;
/**
 * A limit at which the marker has not yet expired, less a second, because the server tells its time in whole seconds.
 */
const LATEST = 60_000 - 1_000;

/** The time limit of each release that this proxy has seen, in milliseconds of the server's clock. */
function limits({ commands }: FaultProxy): number[] {
  return commands
    .map(({ command }) => command)
    .filter(script("release"))
    .map((command) => Number(command.at(-2)));
}

describe.concurrent.each([
  ["behind", -HOUR],
  ["ahead", HOUR],
])("with a clock that is an hour %s", (_, shift) => {
  const clock = { ...systemClock, wall: () => Date.now() + shift };
  const setting = { [INTERNALS]: { clock } } as object;

  test("the first call of a client is run, and counts once", async () => {
    await using site = await Site.fresh(stage, setting, setting, setting);
    expect(await site.semaphore().trySetPermits(3)).toBe(true);
    await site.semaphore(1).release(2);
    await site.semaphore(2).addPermits(1);
    expect(await site.semaphore().availablePermits()).toBe(6);
  });

  test("leases are the server's", async () => {
    await using site = await Site.of(stage, setting, {});
    await site.permits().trySetPermits(1);
    const id = await site.permits().acquire({ lease: 5_000 });
    expect(await site.permits().updateLeaseTime(id, 60_000)).toBe(true);
    const ends = (await site.entries()).get(id) ?? 0;
    expect(Math.abs(ends - Date.now() - 60_000)).toBeLessThan(10_000);
    expect(await site.permits(1).tryRelease(id)).toBe(true);
  });
});

describe.concurrent("no call may be run when its marker has lapsed", () => {
  test("though this machine's clock was ahead before the first answer [B4]", async () => {
    const clock = { ...systemClock, wall: () => Date.now() + HOUR };
    await using site = await Site.fresh(stage, { [INTERNALS]: { clock } } as object);
    await site.semaphore().release(2);
    expect(Math.max(...limits(site.bed(0).proxy))).toBeLessThan((await site.now()) + LATEST);
    expect(await site.value()).toBe("2");
  });

  test.each([
    ["forth", HOUR],
    ["back", -HOUR],
  ])("though this machine's clock is set %s", async (_, step) => {
    let shift = 0;
    const clock = { ...systemClock, wall: () => Date.now() + shift };
    await using site = await Site.of(stage, { [INTERNALS]: { clock } } as object);
    await site.semaphore().trySetPermits(5);
    shift = step;
    await site.semaphore().release(2);
    expect(Math.max(...limits(site.bed(0).proxy))).toBeLessThan((await site.now()) + LATEST);
    expect(await site.value()).toBe("7");
  });

  test("by the clock of another machine: a connection that was lost may lead to one", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().release(1);
    const { proxy, redis } = site.bed(0);
    const lost = new Promise<void>((resolve) => redis.on("close", () => resolve()));
    proxy.clear();
    proxy.cut();
    await lost;
    await site.semaphore().release(1);
    const [first = Number.NaN] = limits(proxy);
    expect(first).toBeLessThan(Date.now() - HOUR);
    expect(await site.value()).toBe("2");
  });

  test("by the clock of another master of the cluster [B4]", async () => {
    await using proxies = await startClusterProxy(stage.cluster);
    const client = new LockClient(proxies.connect());
    const names = Array.from({ length: 30 }, (_, i) => freshName() + i);
    const byMaster = new Map<FaultProxy, string>();
    for (const name of names) byMaster.set(await proxies.proxyFor(name), name);
    expect(byMaster.size).toBe(3);
    // After this a server before Redis 7 has refused the modern text of a script, and is not sent it again.
    await client.ready();
    for (const proxy of byMaster.keys()) proxy.clear();
    for (const [proxy, name] of byMaster) {
      await client.getSemaphore(name).release(1);
      await client.getSemaphore(name).release(1);
      const asked = limits(proxy);
      expect(asked).toHaveLength(3);
      expect(asked[0]).toBeLessThan(Date.now() - HOUR);
      expect(await client.getSemaphore(name).availablePermits()).toBe(2);
    }
    await client.close();
  });
});

describe.concurrent("what is told", () => {
  test("of permits with a lease is what Redisson tells: how many are new, how many there are to be", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(3);
    await using heard = await hear(stage, permitChannel(site.name));
    await site.permits().addPermits(2);
    await site.permits().setPermits(5);
    await site.permits().setPermits(9);
    expect(await heard.messages()).toEqual(["2", "9"]);
    await site.redis.del(site.name);
  });

  test("of a lease that was made shorter, so that nobody looks too late", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(1);
    const id = await site.permits().acquire({ lease: 60_000 });
    await using heard = await hear(stage, permitChannel(site.name));
    await site.permits().updateLeaseTime(id, 90_000);
    await site.permits().updateLeaseTime(id, 30_000);
    expect(await heard.messages()).toEqual(["1"]);
    await site.permits().release(id);
  });
});

describe.concurrent("a kept permit that is found gone", () => {
  test("by its release is told as lost, once", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(1);
    const events = site.events();
    const id = await site.permits().acquire();
    await site.redis.del(timeoutsOf(site.name));
    await expect(site.permits().release(id)).rejects.toMatchObject({ code: "NOT_OWNER" });
    expect(await site.permits().tryRelease(id)).toBe(false);
    expect(events.of("lost")).toEqual([expect.objectContaining({ permitId: id, reason: "expired" })]);
    expect(events.of("released")).toEqual([]);
  });
});
