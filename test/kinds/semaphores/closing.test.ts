/** What `close` does to semaphores and latches: waiters end; kept permits get time, and are given back after it. */
import { describe, expect, test } from "vitest";
import { failsSoon, manyAtOnce, pause, SOON, soon, turn, useStage, watch } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { calls } from "./calls.js";
import { NEVER, Site, UNKNOWN } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

const closed = (site: Site): object => ({ code: "CLIENT_CLOSED", lockName: site.name });

test("each call of a closed client rejects CLIENT_CLOSED, and nothing is sent", async () => {
  await using site = await Site.of(stage);
  const { client, proxy } = site.bed(0);
  // Objects from before the close are closed with their client.
  const [semaphore, permits, latch] = [site.semaphore(), site.permits(), site.latch()];
  const early = { semaphore: () => semaphore, permits: () => permits, latch: () => latch } as unknown as Site;
  await client.close();
  proxy.clear();
  for (const [name, call] of calls) await expect(call(early), name).rejects.toMatchObject(closed(site));
  const all = async (): Promise<void> => {
    for await (const _ of client.list());
  };
  for (const call of [client.inspect(site.name), all()])
    await expect(call).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  expect(proxy.count()).toBe(0);
});

test("what can be no permit's id is of a closed client as any other [B120]", async () => {
  await using site = await Site.of(stage);
  const permits = site.permits();
  await site.bed(0).client.close();
  const [id, none] = ["x", UNKNOWN];
  for (const call of [
    () => permits.release(id),
    () => permits.tryRelease(id),
    () => permits.tryRelease(none),
  ])
    await expect(call()).rejects.toMatchObject(closed(site));
});

describe.concurrent("waiters end with CLIENT_CLOSED at once, and leave nothing", () => {
  test.each<[string, (site: Site) => Promise<unknown>]>([
    ["semaphore acquire", (site) => site.semaphore().acquire()],
    ["semaphore tryAcquire", (site) => site.semaphore().tryAcquire(1, NEVER)],
    ["semaphore run", (site) => site.semaphore().run(() => {})],
    ["permits acquire", (site) => site.permits().acquire()],
    ["permits tryAcquire", (site) => site.permits().tryAcquire(NEVER, NEVER)],
    ["latch await", (site) => site.latch().await()],
    ["latch await with a bound", (site) => site.latch().await(NEVER)],
  ])("%s", async (name, call) => {
    await using site = await Site.of(stage, { split: true });
    const before = name.startsWith("latch") ? 1 : 0;
    await site.redis.set(site.name, before);
    const waiting = [await site.parked(0, () => call(site)), watch(call(site))];
    await site.bed(0).client.close({ timeout: 5_000 });
    for (const each of waiting) expect(await failsSoon(each)).toMatchObject(closed(site));
    await until("its connection is closed", () => site.bed(0).subscribing.openConnections === 0);
    await site.redis.incrby(site.name, 5);
    await turn();
    expect(await site.value()).toBe(String(before + 5));
  });

  test.each<[string, string, (site: Site) => Promise<unknown>]>([
    ["permits", "3", (site) => site.semaphore().acquire(2)],
    ["an expirable permit", "4", (site) => site.permits().acquire()],
  ])("with the grant of %s in flight: it is given back", async (_, left, call) => {
    await using site = await Site.of(stage);
    await site.redis.set(site.name, "5");
    site.bed(0).proxy.delayReplies(NEVER, site.own);
    const watched = watch(call(site));
    await site.untilValue(left);
    const closing = site.bed(0).client.close({ timeout: 0 });
    expect(await failsSoon(watched)).toMatchObject(closed(site));
    site.bed(0).proxy.restore();
    await closing;
    await site.untilValue("5");
    await site.expectPermits(5, 0);
  });
});

describe.concurrent("permits that are held", () => {
  test("kept ones get the time to be given back; close ends as soon as they are", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: 4_500 });
    await site.permits().trySetPermits(3);
    const events = site.events();
    const ids = [await site.permits().acquire(), await site.permits().acquire()];
    const closing = watch(site.client(0).close({ timeout: 2 * SOON }));
    await pause(5_000); // longer than the watchdog's time-out, so the watchdog goes on
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
    await using site = await Site.of(stage, {}, { pollCap: NEVER });
    await site.permits().trySetPermits(2);
    const events = site.events();
    const ids = [await site.permits().acquire(), await site.permits().acquire()];
    const waiting = await site.parked(1, () => site.permits(1).acquire({ lease: NEVER }));
    const began = performance.now();
    await site.client(0).close({ timeout });
    expect(performance.now() - began).toBeGreaterThanOrEqual(timeout - 5);
    expect(await soon(waiting)).toMatch(/^[0-9a-f]{32}$/);
    await site.expectPermits(1, 1);
    const about = { lockName: site.name, kind: "permits", reason: "closed" };
    const losses = ids.map((permitId) => expect.objectContaining({ ...about, permitId }));
    expect(events.of("lost")).toHaveLength(2);
    expect(events.of("lost")).toEqual(expect.arrayContaining(losses));
  });

  test.each<[string, (site: Site) => Promise<string>]>([
    ["one with a lease", (site) => site.permits().acquire({ lease: 60_000 })],
    [
      "a kept one whose lease was set",
      async (site) => {
        const id = await site.permits().acquire();
        await site.permits().updateLeaseTime(id, 60_000);
        return id;
      },
    ],
  ])("%s is left alone, and not waited for", async (_, take) => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(2);
    const events = site.events();
    const id = await take(site);
    await soon(watch(site.client(0).close({ timeout: 2 * SOON })));
    expect([...(await site.entries()).keys()]).toEqual([id]);
    expect(events.of("lost")).toEqual([]);
  });

  test("those of a plain semaphore are the user's: a run gets the time to end, and gives them back", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(3);
    await site.semaphore().acquire();
    const { running, leave } = await site.entered();
    const closing = watch(site.client(0).close({ timeout: 15_000 }));
    await pause(100);
    leave("done");
    await soon(closing);
    await soon(running);
    await site.expectOnly("2");
  });

  test("a run that outlives the close is told so, as a loss; its permits are given back once", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(3);
    const events = site.events();
    const { running, leave } = await site.entered({ permits: 2 });
    await site.client(0).close({ timeout: 0 });
    await site.expectOnly("3");
    leave("done");
    expect(await failsSoon(running)).toMatchObject({ code: "LOCK_LOST", reason: "closed", result: "done" });
    expect(events.of("lost")).toHaveLength(1);
    expect(events.of("released")).toEqual([]);
    await site.expectOnly("3");
  });

  test("those that the close gave back may be released later: nothing is sent, nothing fails", async () => {
    await using site = await Site.of(stage);
    const permits = site.permits();
    await permits.trySetPermits(2);
    const id = await permits.acquire();
    await site.client(0).close({ timeout: 0 });
    await expect(permits.release(id)).resolves.toBeUndefined();
    await site.expectPermits(2, 0);
  });
});
