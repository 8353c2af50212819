/**
 * Calls on semaphores and latches without an answer are UNAVAILABLE in time. A call that takes permits has then taken
 * none; a call that gives something back goes on until it has taken effect, once.
 */
import { describe, expect, test } from "vitest";
import {
  atLast,
  failsSoon,
  manyAtOnce,
  Stage,
  turn,
  untilQuiet,
  useStage,
  watch,
} from "../../faults/harness.js";
import { type HeldRequest, PATIENCE, SLACK, until } from "../../support/index.js";
import { calls } from "./calls.js";
import { Site } from "./helpers.js";
import {
  expectAsIs,
  isAsIs,
  isOfEachSort,
  type Named,
  type Operation,
  operations,
  prepare,
} from "./operations.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");

const all = Object.entries(operations);
const isGiver = (name: string): boolean => /release|countDown/i.test(name) && !name.includes("unknown");
const takers = all.filter(([, { takes }]) => takes);
/** Operations whose effect must not be lost when the call fails. */
const givers = all.filter(([name]) => isGiver(name));
const others = all.filter(([name, { takes }]) => !takes && !isGiver(name));

/** Withholds the request of the call, and refuses the client any other connection to the server. */
async function stuck(site: Site): Promise<HeldRequest> {
  const { proxy } = site.bed(0);
  const ghost = proxy.holdRequest(site.own);
  await ghost.fired;
  proxy.refuse();
  return ghost;
}

/** A call that was given up while its request is still on its way. */
async function givenUp(site: Site, operation: Operation): Promise<HeldRequest> {
  const id = await prepare(site, operation);
  const call = watch(operation.call(site, id));
  const ghost = await stuck(site);
  expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE", lockName: site.name });
  expect(call.took).toBeLessThan(TIME + SLACK);
  return ghost;
}

const TIME = 2_000;
const impatient = { commandTimeout: TIME };

describe.concurrent.each(["standalone", "cluster"] as const)("%s", (topology) => {
  const tried = <T extends Named>(calls: readonly T[]): T[] =>
    calls.filter((call) => topology === "standalone" || isOfEachSort(call));

  describe("a call that takes, and is given up", () => {
    test.each(tried(takers))("%s: is refused when it arrives after its clean-up", async (_, operation) => {
      await using site = await Site.of(stage, { ...impatient, topology });
      const ghost = await givenUp(site, operation);
      const before = await site.markers();
      site.bed(0).proxy.restore();
      // It is not enough that the clean-up is sent: a server that stands still may run the delivered request first.
      const isNew = (marker: string) => !before.includes(marker);
      await until("its clean-up is done", async () => (await site.markers()).some(isNew));
      await untilQuiet(() => site.asked());
      await ghost.deliver();
      await expectAsIs(site, operation, "before");
    });

    test.each(tried(takers))("%s: is undone when it arrives before its clean-up", async (_, operation) => {
      await using site = await Site.of(stage, { ...impatient, topology });
      const ghost = await givenUp(site, operation);
      await ghost.deliver();
      site.bed(0).proxy.restore();
      await until("it is undone", () => isAsIs(site, operation, "before"));
      await untilQuiet(() => site.asked());
      await expectAsIs(site, operation, "before");
    });
  });

  describe("a call that gives, and is given up", () => {
    test.each(tried(givers))("%s: takes effect once when Redis answers again", async (_, operation) => {
      await using site = await Site.of(stage, { ...impatient, topology });
      const ghost = await givenUp(site, operation);
      site.bed(0).proxy.restore();
      await until("it has taken effect", () => isAsIs(site, operation, "after"));
      await ghost.deliver();
      await untilQuiet(() => site.asked());
      await expectAsIs(site, operation, "after");
    });

    test.each(tried(givers))("%s: counts once when its first request arrives first", async (_, operation) => {
      await using site = await Site.of(stage, { ...impatient, topology });
      const ghost = await givenUp(site, operation);
      await ghost.deliver();
      site.bed(0).proxy.restore();
      await untilQuiet(() => site.asked());
      await expectAsIs(site, operation, "after");
    });
  });

  test.each(tried(others))("%s, given up: nothing comes of it later than its end", async (_, operation) => {
    await using site = await Site.of(stage, { ...impatient, topology });
    const ghost = await givenUp(site, operation);
    const asked = site.asked();
    site.bed(0).proxy.restore();
    await until("it was sent again", () => site.asked() > asked);
    await untilQuiet(() => site.asked());
    const settled = [await site.value(), (await site.entries()).size];
    await ghost.deliver();
    await untilQuiet(() => site.asked());
    expect([await site.value(), (await site.entries()).size]).toEqual(settled);
  });
});

describe.concurrent("without an answer", () => {
  test.each(calls)("%s rejects UNAVAILABLE after commandTimeout", async (_, call) => {
    await using site = await Site.of(stage, impatient);
    site.bed(0).proxy.blackhole();
    const watched = watch(call(site));
    expect(await failsSoon(watched)).toMatchObject({ code: "UNAVAILABLE", lockName: site.name });
    expect(watched.took).toBeGreaterThan(TIME - 50);
    expect(watched.took).toBeLessThan(TIME + SLACK);
  });

  test.each<[string, (site: Site) => Promise<unknown>]>([
    ["semaphore tryAcquire", (site) => site.semaphore().tryAcquire(1, 200)],
    ["semaphore run", (site) => site.semaphore().run(() => {}, { wait: 200 })],
    ["permits tryAcquire", (site) => site.permits().tryAcquire(200, 60_000)],
    ["latch await", (site) => site.latch().await(200)],
  ])("%s rejects UNAVAILABLE after its wait, if that is shorter", async (_, call) => {
    await using site = await Site.of(stage);
    site.bed(0).proxy.blackhole();
    const watched = watch(call(site));
    expect(await failsSoon(watched)).toMatchObject({ code: "UNAVAILABLE", lockName: site.name });
    expect(watched.took).toBeGreaterThan(150);
    expect(watched.took).toBeLessThan(200 + SLACK);
  });

  test.each<[string, (site: Site, signal: AbortSignal) => Promise<unknown>]>([
    ["semaphore acquire", (site, signal) => site.semaphore().acquire(2, { signal })],
    ["semaphore tryAcquire", (site, signal) => site.semaphore().tryAcquire(2, 0, { signal })],
    ["permits acquire", (site, signal) => site.permits().acquire({ signal })],
    ["permits tryAcquire", (site, signal) => site.permits().tryAcquire(0, 60_000, { signal })],
    ["latch await", (site, signal) => site.latch().await(undefined, { signal })],
  ])("%s can be aborted at once, and leaves nothing", async (_, call) => {
    await using site = await Site.of(stage);
    await site.redis.set(site.name, "5");
    const controller = new AbortController();
    const watched = watch(call(site, controller.signal));
    const ghost = await stuck(site);
    controller.abort("enough");
    await turn();
    expect(watched.error).toBe("enough");
    site.bed(0).proxy.restore();
    await untilQuiet(() => site.asked());
    await ghost.deliver();
    await untilQuiet(() => site.asked());
    expect(await site.value()).toBe("5");
    expect((await site.entries()).size).toBe(0);
  });

  test("a release that got no answer goes on; a further call shares its outcome", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { commandTimeout: 2_000 });
    await atLast(() => site.permits().trySetPermits(2));
    const id = await atLast(() => site.permits().acquire());
    own.server.pause();
    expect(await failsSoon(watch(site.permits().release(id)))).toMatchObject({ code: "UNAVAILABLE" });
    const again = watch(site.permits().release(id));
    own.server.resume();
    await until("it is over", () => again.state !== "pending");
    expect(again.error).toBeUndefined();
    await site.expectPermits(2, 0);
    expect(await site.permits().tryRelease(id)).toBe(false);
  });

  test("a server that is killed and comes back: each call under way counts once", async () => {
    await using own = await Stage.start(["standalone"], ["--appendonly", "yes", "--appendfsync", "always"]);
    await using site = await Site.of(own, { commandTimeout: PATIENCE });
    const { client } = site.bed(0);
    const names = Array.from({ length: 12 }, (_, i) => `${site.name}-${i}`);
    for (const name of names) await site.redis.set(name, "50");
    const calls = names.flatMap((name) => [
      watch(client.getSemaphore(name).acquire(2)),
      watch(client.getSemaphore(name).release(5)),
      watch(client.getSemaphore(name).run(() => {}, { permits: 7 })),
    ]);
    await own.server.kill();
    await own.server.restart();
    await until("all are over", () => calls.every(({ state }) => state !== "pending"), { timeout: PATIENCE });
    expect(calls.map(({ error }) => error)).toEqual(calls.map(() => undefined));
    expect(await site.redis.mget(names)).toEqual(names.map(() => "53"));
  });
});
