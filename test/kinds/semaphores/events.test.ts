/** The events of semaphores and latches. */
import { describe, expect, test } from "vitest";
import { atLast, failsSoon, manyAtOnce, Stage, soon, useStage, watch } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { Site } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent("a semaphore tells", () => {
  test("acquired and released, of each call, with its name and kind", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(3);
    const events = site.events();
    const about = { lockName: site.name, kind: "semaphore" };
    await site.semaphore().acquire(2);
    expect(events.of("acquired")).toMatchObject([{ ...about, waited: expect.any(Number) }]);
    await site.semaphore().release(2);
    expect(events.of("released")).toMatchObject([about]);
    await site.semaphore().run(() => {});
    expect(events.of("acquired")).toHaveLength(2);
    expect(events.of("released")).toHaveLength(2);
    expect(await site.semaphore().tryAcquire(9)).toBe(false);
    const names = events.all.map(({ name }) => name);
    expect(names).toEqual(["acquired", "released", "acquired", "released", "rejected"]);
  });

  test("waiting, once for each call that waits, and what was waited", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.semaphore().trySetPermits(0);
    const events = site.events();
    const waiting = [
      await site.parked(0, () => site.semaphore().acquire()),
      watch(site.semaphore().tryAcquire(1, 10_000)),
    ];
    await until("both wait", () => events.of("waiting").length === 2);
    expect(events.of("waiting")[0]).toMatchObject({ lockName: site.name, kind: "semaphore" });
    await new Promise((resolve) => setTimeout(resolve, 80));
    await site.semaphore(1).release(2);
    for (const call of waiting) await soon(call as never);
    expect(events.of("waiting")).toHaveLength(2);
    expect(events.of("acquired").map(({ waited }) => Number(waited) >= 70)).toEqual([true, true]);
  });
});

describe.concurrent("an expirable semaphore tells", () => {
  test("acquired and released with the permit's id", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(3);
    const events = site.events();
    const about = { lockName: site.name, kind: "permits" };
    const a = await site.permits().acquire();
    const b = (await site.permits().tryAcquire(0, 60_000)) ?? "";
    expect(events.of("acquired")).toMatchObject([
      { ...about, permitId: a, waited: expect.any(Number) },
      { ...about, permitId: b, waited: expect.any(Number) },
    ]);
    await site.permits().release(a);
    await site.permits().tryRelease(b);
    expect(events.of("released")).toMatchObject([
      { ...about, permitId: a },
      { ...about, permitId: b },
    ]);
    expect(events.of("lost")).toEqual([]);
  });

  test("released once Redis has answered, though the call was given up, and called again [B76]", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { commandTimeout: 2_000 });
    await atLast(() => site.permits().trySetPermits(2));
    const ids = [await atLast(() => site.permits().acquire()), await atLast(() => site.permits().acquire())];
    const events = site.events();
    own.server.pause();
    for (const call of ids.map((id) => watch(site.permits().release(id))))
      expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    expect(events.of("released")).toEqual([]);
    const again = watch(site.permits().release(ids[1] ?? ""));
    own.server.resume();
    await soon(again);
    await until("both are told", () => events.of("released").length === 2);
    const about = { lockName: site.name, kind: "permits", held: expect.any(Number) };
    expect(events.of("released")).toMatchObject(ids.map((permitId) => ({ ...about, permitId })));
    expect(events.of("lost")).toEqual([]);
  });

  test("waiting", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.permits().trySetPermits(0);
    const events = site.events();
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: 60_000 }));
    expect(events.of("waiting")).toMatchObject([{ lockName: site.name, kind: "permits" }]);
    await site.permits(1).addPermits(1);
    await soon(waiting);
  });
});

describe.concurrent("a latch tells", () => {
  test("waiting, and nothing else", async () => {
    await using site = await Site.of(stage, {}, {});
    const events = site.events();
    await site.latch().trySetCount(1);
    expect(await site.latch().await(0)).toBe(false);
    const waiting = await site.parked(0, () => site.latch().await());
    expect(events.of("waiting")).toMatchObject([{ lockName: site.name, kind: "latch" }]);
    await site.latch().countDown();
    await soon(waiting);
    expect(events.of("error")).toEqual([]);
    expect(events.of("lost")).toEqual([]);
  });
});

describe.concurrent("listeners", () => {
  test("that throw disturb nothing", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: 6_000 }, {});
    const { client } = site.bed(0);
    const events = site.events();
    for (const name of ["acquired", "released", "waiting", "renewed", "lost", "error"] as const)
      client.on(name, () => {
        throw new Error(`the listener of ${name}`);
      });
    await site.permits().trySetPermits(1);
    const id = await site.permits().acquire();
    await until("renewals", () => events.of("renewed").length >= 2);
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: 60_000 }));
    await site.permits().release(id);
    await soon(waiting);
    await site.expectPermits(0, 1);
  });

  test("of which one throws: those behind it hear the event, and `once` and `off` are as ever [B121]", async () => {
    await using site = await Site.of(stage);
    const { client } = site.bed(0);
    const heard: string[] = [];
    const hear = (who: string) => () => {
      heard.push(who);
      throw new Error(who);
    };
    const [first, second, third] = [hear("first"), hear("second"), hear("third")];
    client.on("acquired", first).once("acquired", second).on("acquired", third);
    await site.semaphore().trySetPermits(5);
    await site.semaphore().acquire();
    expect(heard).toEqual(["first", "second", "third"]);
    client.off("acquired", first).once("acquired", second).off("acquired", second);
    await site.semaphore().acquire();
    expect(heard.slice(3)).toEqual(["third"]);
  });

  test("an `error` that nobody hears throws nothing", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { commandTimeout: 2_000 });
    await atLast(() => site.semaphore().trySetPermits(1));
    await site.semaphore().run(() => own.server.pause());
    own.server.resume();
    await site.untilValue("1");
  });
});
