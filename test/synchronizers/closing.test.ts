/** What `close` makes of semaphores and latches: waiters end, kept permits get time, then they are given back. */
import { describe, expect, test } from "vitest";
import { deferred } from "../contract/helpers.js";
import { failOnUnhandledRejections, manyAtOnce, pause, SOON, soon, turn, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { failsSoon, NEVER, Site, UNKNOWN, useStage } from "./helpers.js";

manyAtOnce();
failOnUnhandledRejections();
const stage = useStage();

const closed = (site: Site): object => ({ code: "CLIENT_CLOSED", lockName: site.name });

const calls: Record<string, (site: Site) => Promise<unknown>> = {
  "semaphore trySetPermits": (site) => site.semaphore().trySetPermits(1),
  "semaphore acquire": (site) => site.semaphore().acquire(),
  "semaphore tryAcquire": (site) => site.semaphore().tryAcquire(),
  "semaphore release": (site) => site.semaphore().release(),
  "semaphore addPermits": (site) => site.semaphore().addPermits(1),
  "semaphore availablePermits": (site) => site.semaphore().availablePermits(),
  "semaphore drainPermits": (site) => site.semaphore().drainPermits(),
  "semaphore run": (site) => site.semaphore().run(() => {}),
  "permits trySetPermits": (site) => site.permits().trySetPermits(1),
  "permits acquire": (site) => site.permits().acquire(),
  "permits tryAcquire": (site) => site.permits().tryAcquire(),
  "permits release": (site) => site.permits().release(UNKNOWN),
  "permits tryRelease": (site) => site.permits().tryRelease(UNKNOWN),
  "permits updateLeaseTime": (site) => site.permits().updateLeaseTime(UNKNOWN, 1_000),
  "permits availablePermits": (site) => site.permits().availablePermits(),
  "permits acquiredPermits": (site) => site.permits().acquiredPermits(),
  "permits getPermits": (site) => site.permits().getPermits(),
  "permits setPermits": (site) => site.permits().setPermits(1),
  "permits addPermits": (site) => site.permits().addPermits(1),
  "latch trySetCount": (site) => site.latch().trySetCount(1),
  "latch countDown": (site) => site.latch().countDown(),
  "latch await": (site) => site.latch().await(),
  "latch getCount": (site) => site.latch().getCount(),
  inspect: (site) => site.client(0).inspect(site.name),
};

test.each(Object.entries(calls))(
  "%s of a closed client rejects CLIENT_CLOSED, and nothing is sent",
  async (name, call) => {
    await using site = await Site.of(stage());
    const { client, proxy } = site.bed(0);
    // Objects made before the close are as closed as the client.
    const early = { semaphore: site.semaphore(), permits: site.permits(), latch: site.latch() };
    await client.close();
    proxy.clear();
    const held = {
      ...site,
      name: site.name,
      semaphore: () => early.semaphore,
      permits: () => early.permits,
      latch: () => early.latch,
      client: () => client,
    } as unknown as Site;
    await expect(call(held)).rejects.toMatchObject(
      name === "inspect" ? { code: "CLIENT_CLOSED" } : closed(site),
    );
    expect(proxy.count()).toBe(0);
  },
);

test("list of a closed client rejects CLIENT_CLOSED", async () => {
  await using site = await Site.of(stage());
  await site.client(0).close();
  const all = async (): Promise<void> => {
    for await (const _ of site.client(0).list());
  };
  await expect(all()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
});

describe.concurrent("waiters end with CLIENT_CLOSED at once, and leave nothing", () => {
  test.each<[string, (site: Site) => Promise<unknown>]>([
    ["semaphore acquire", (site) => site.semaphore().acquire()],
    ["semaphore tryAcquire", (site) => site.semaphore().tryAcquire(1, NEVER)],
    ["semaphore run", (site) => site.semaphore().run(() => {})],
    ["permits acquire", (site) => site.permits().acquire()],
    ["permits tryAcquire", (site) => site.permits().tryAcquire(NEVER, NEVER)],
  ])("%s", async (_, call) => {
    await using site = await Site.of(stage(), { split: true });
    await site.redis.set(site.name, "0");
    const waiting = [await site.parked(0, () => call(site)), watch(call(site))];
    await site.bed(0).client.close({ timeout: 5_000 });
    for (const each of waiting) expect(await failsSoon(each)).toMatchObject(closed(site));
    await until("its connection is closed", () => site.bed(0).subscribing.openConnections === 0);
    await site.redis.incrby(site.name, 5);
    await turn();
    expect(await site.value()).toBe("5");
  });

  test("latch await", async () => {
    await using site = await Site.of(stage());
    await site.redis.set(site.name, "1");
    const waiting = [await site.parked(0, () => site.latch().await()), watch(site.latch().await(NEVER))];
    await site.bed(0).client.close({ timeout: 0 });
    for (const each of waiting) expect(await failsSoon(each)).toMatchObject(closed(site));
  });

  test("with the grant in flight: the permits are given back", async () => {
    await using site = await Site.of(stage());
    await site.redis.set(site.name, "5");
    site.bed(0).proxy.delayReplies(NEVER, site.own);
    const call = watch(site.semaphore().acquire(2));
    await site.untilValue("3");
    const closing = site.bed(0).client.close({ timeout: 0 });
    expect(await failsSoon(call)).toMatchObject(closed(site));
    site.bed(0).proxy.restore();
    await closing;
    await site.untilValue("5");
  });

  test("with the grant of an expirable permit in flight: it is given back", async () => {
    await using site = await Site.of(stage());
    await site.redis.set(site.name, "5");
    site.bed(0).proxy.delayReplies(NEVER, site.own);
    const call = watch(site.permits().acquire());
    await site.untilValue("4");
    const closing = site.bed(0).client.close({ timeout: 0 });
    expect(await failsSoon(call)).toMatchObject(closed(site));
    site.bed(0).proxy.restore();
    await closing;
    await site.untilValue("5");
    await site.expectPermits(5, 0);
  });
});

describe.concurrent("permits that are held", () => {
  test("kept ones get the time to be given back; close ends as soon as they are", async () => {
    await using site = await Site.of(stage(), { watchdogTimeout: 4_500 });
    await site.permits().trySetPermits(3);
    const events = site.events();
    const ids = [await site.permits().acquire(), await site.permits().acquire()];
    const closing = watch(site.client(0).close({ timeout: 2 * SOON }));
    await pause(5_000); // longer than the watchdog's time: it goes on
    expect(closing.state).toBe("pending");
    expect([...(await site.entries()).keys()].sort()).toEqual([...ids].sort());
    await site.permits().release(ids[0] ?? "");
    expect(await site.permits().tryRelease(ids[1] ?? "")).toBe(true);
    await soon(closing);
    expect(closing.took).toBeLessThan(5_000 + SOON);
    await site.expectPermits(3, 0);
    expect(events.of("lost")).toEqual([]);
  });

  test.each([300, 0])("kept ones are given back after %i ms, and told lost: closed", async (timeout) => {
    await using site = await Site.of(stage(), {}, { pollCap: NEVER });
    await site.permits().trySetPermits(2);
    const events = site.events();
    const ids = [await site.permits().acquire(), await site.permits().acquire()];
    const waiting = await site.parked(1, () => site.permits(1).acquire({ lease: NEVER }));
    const began = performance.now();
    await site.client(0).close({ timeout });
    expect(performance.now() - began).toBeGreaterThanOrEqual(timeout - 5);
    expect(await soon(waiting)).toMatch(/^[0-9a-f]{32}$/);
    await site.expectPermits(1, 1);
    expect(
      events
        .of("lost")
        .map(({ permitId }) => permitId)
        .sort(),
    ).toEqual(ids.sort());
    for (const event of events.of("lost"))
      expect(event).toMatchObject({ lockName: site.name, kind: "permits", reason: "closed" });
  });

  test("leased ones are left alone, and not waited for", async () => {
    await using site = await Site.of(stage());
    await site.permits().trySetPermits(2);
    const events = site.events();
    const id = await site.permits().acquire({ lease: 60_000 });
    const closing = watch(site.client(0).close({ timeout: 20_000 }));
    await soon(closing);
    expect([...(await site.entries()).keys()]).toEqual([id]);
    expect(events.of("lost")).toEqual([]);
  });

  test("a kept one whose lease was set is left alone", async () => {
    await using site = await Site.of(stage());
    await site.permits().trySetPermits(2);
    const events = site.events();
    const id = await site.permits().acquire();
    await site.permits().updateLeaseTime(id, 60_000);
    const closing = watch(site.client(0).close({ timeout: 20_000 }));
    await soon(closing);
    expect([...(await site.entries()).keys()]).toEqual([id]);
    expect(events.of("lost")).toEqual([]);
  });

  test("those of a plain semaphore are the user's: a run gets the time to end, and gives them back", async () => {
    await using site = await Site.of(stage());
    await site.semaphore().trySetPermits(3);
    await site.semaphore().acquire();
    const [begun, end] = [deferred(), deferred()];
    const fn = (): Promise<void> => {
      begun.resolve();
      return end.promise;
    };
    const running = watch(site.semaphore().run(fn));
    await begun.promise;
    const closing = watch(site.client(0).close({ timeout: 15_000 }));
    await pause(100);
    end.resolve();
    await soon(closing);
    await soon(running);
    await site.expectOnly("2");
  });

  test("a run that outlives the close is told so; its permit is given back once", async () => {
    await using site = await Site.of(stage());
    await site.semaphore().trySetPermits(3);
    const [begun, end] = [deferred(), deferred<string>()];
    const fn = (): Promise<string> => {
      begun.resolve();
      return end.promise;
    };
    const running = watch(site.semaphore().run(fn, { permits: 2 }));
    await begun.promise;
    await site.client(0).close({ timeout: 0 });
    await site.expectOnly("3");
    end.resolve("done");
    expect(await failsSoon(running)).toMatchObject({ code: "LOCK_LOST", reason: "closed", result: "done" });
    await site.expectOnly("3");
  });

  test("those that the close gave back may be released later: nothing is sent, nothing fails", async () => {
    await using site = await Site.of(stage());
    const permits = site.permits();
    await permits.trySetPermits(2);
    const id = await permits.acquire();
    await site.client(0).close({ timeout: 0 });
    await expect(permits.release(id)).resolves.toBeUndefined();
    await site.expectPermits(2, 0);
  });
});
