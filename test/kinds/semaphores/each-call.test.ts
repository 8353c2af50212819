/** Each call of semaphores and latches without faults: its result, its keys, its message, and its cost. */
import { describe, expect, test } from "vitest";
import { manyAtOnce, ownCommand, useStage } from "../../faults/harness.js";
import { isPresence } from "../../support/index.js";
import { hear } from "./hear.js";
import { latchChannel, permitChannel, Site } from "./helpers.js";
import { expectAsIs, type Operation, operations, prepare } from "./operations.js";

manyAtOnce();
const stage = await useStage("standalone");

/** Calls that change nothing. */
const QUESTIONS: Readonly<Record<string, Operation>> = {
  "semaphore availablePermits": {
    call: (site) => site.semaphore().availablePermits(),
    gives: 5,
    value: ["5", "5"],
  },
  "semaphore availablePermits, in debt": {
    call: (site) => site.semaphore().availablePermits(),
    gives: -3,
    value: ["-3", "-3"],
  },
  "semaphore drainPermits, missing": {
    call: (site) => site.semaphore().drainPermits(),
    gives: 0,
    value: [null, null],
  },
  "permits availablePermits": {
    call: (site) => site.permits().availablePermits(),
    gives: 4,
    value: ["4", "4"],
    used: [1, 1],
  },
  "permits acquiredPermits": {
    call: (site) => site.permits().acquiredPermits(),
    gives: 1,
    value: ["4", "4"],
    used: [1, 1],
  },
  "permits getPermits": {
    call: (site) => site.permits().getPermits(),
    gives: 5,
    value: ["4", "4"],
    used: [1, 1],
  },
  "permits getPermits, missing": {
    call: (site) => site.permits().getPermits(),
    gives: 0,
    value: [null, null],
  },
  "latch getCount": { call: (site) => site.latch().getCount(), gives: 3, value: ["3", "3"] },
  "latch getCount, open": { call: (site) => site.latch().getCount(), gives: 0, value: [null, null] },
  "latch await without a wait": { call: (site) => site.latch().await(0), gives: false, value: ["3", "3"] },
  "latch await, open": { call: (site) => site.latch().await(), gives: true, value: [null, null] },
};

describe.concurrent("by one command", () => {
  test.each(Object.entries({ ...operations, ...QUESTIONS }))("%s", async (name, operation) => {
    await using site = await Site.of(stage, { split: true });
    const id = await prepare(site, operation);
    const channel = name.startsWith("latch") ? latchChannel : permitChannel;
    await using heard = await hear(stage, channel(site.name));
    site.bed(0).proxy.clear();
    expect(await operation.call(site, id)).toEqual(operation.gives);
    // Presence is not counted: it is published for a permit that is a second old.
    expect(site.bed(0).proxy.count((command) => !isPresence(command))).toBe(1);
    expect(await heard.messages()).toEqual(operation.heard ?? []);
    await expectAsIs(site, operation, "after");
  });
});

test("run: one command to take permits, one to give them back", async () => {
  await using site = await Site.of(stage, { split: true });
  await site.semaphore().release();
  site.bed(0).proxy.clear();
  await site.semaphore().run(() => {});
  expect(site.bed(0).proxy.commands).toHaveLength(2);
});

test("of many that come at once, each takes its permit with one command", async () => {
  await using site = await Site.of(stage, { split: true });
  await site.semaphore().trySetPermits(50);
  site.bed(0).proxy.clear();
  await Promise.all(Array.from({ length: 50 }, () => site.semaphore().acquire()));
  expect(site.bed(0).proxy.count(ownCommand)).toBeLessThanOrEqual(50);
  await site.expectOnly("0");
});

test("many that count a latch down at once are all counted", async () => {
  await using site = await Site.of(stage, {}, {});
  await site.latch().trySetCount(101);
  await Promise.all(Array.from({ length: 100 }, (_, i) => site.latch(i % 2).countDown()));
  await site.expectOnly("1");
});

test("an owner has nothing to do with it: a scope takes permits one after the other", async () => {
  await using site = await Site.of(stage);
  await site.semaphore().trySetPermits(2);
  await site.client(0).scope(async () => {
    await site.semaphore().acquire();
    await site.semaphore().acquire();
    expect(await site.semaphore().tryAcquire()).toBe(false);
  });
  await site.expectOnly("0");
});

test("large numbers are counted exactly", async () => {
  await using site = await Site.of(stage);
  const many = 2 ** 52;
  await site.semaphore().trySetPermits(many);
  await site.semaphore().acquire(many - 1);
  expect(await site.semaphore().availablePermits()).toBe(1);
  await site.semaphore().release(many - 2);
  await site.expectOnly(String(many - 1));
  expect(await site.semaphore().drainPermits()).toBe(many - 1);
});

test("what Redis does not count any more is refused: nothing is given back, and nothing is lost [B108]", async () => {
  await using site = await Site.of(stage);
  const most = String(2n ** 63n - 1n);
  await site.redis.set(site.name, most);
  const refused = {
    code: "WRONG_DATA",
    lockName: site.name,
    message: expect.stringContaining("would overflow"),
  };
  await expect(site.semaphore().release()).rejects.toMatchObject(refused);
  await expect(site.semaphore().addPermits(7)).rejects.toMatchObject(refused);
  expect(await site.value()).toBe(most);
  await site.semaphore().acquire(2_000);
  await site.semaphore().release(7);
  expect(await site.value()).toBe(String(2n ** 63n - 1n - 1_993n));
});

test.each([10n ** 17n, 2n ** 63n - 1n])("%i permits can be drained, and set anew [B118]", async (many) => {
  await using site = await Site.of(stage);
  await site.redis.set(site.name, String(many));
  expect(await site.semaphore().drainPermits()).toBe(Number(many));
  await site.expectOnly("0");
  await site.redis.set(site.name, String(many));
  await site.permits().setPermits(3);
  await site.expectOnly("3");
});

test.each([
  ["a semaphore", permitChannel, (site: Site) => site.semaphore()],
  ["a latch", latchChannel, (site: Site) => site.latch()],
] as const)("a prefix is put before the name of %s", async (_, channel, of) => {
  await using site = await Site.of(stage, { prefix: "app" });
  await using heard = await hear(stage, channel(`app:${site.name}`));
  const counted = of(site);
  await ("release" in counted ? counted.release() : counted.trySetCount(1));
  expect(await site.redis.get(`app:${site.name}`)).toBe("1");
  expect(await site.redis.exists(site.name)).toBe(0);
  expect(await heard.messages()).toEqual(["1"]);
  expect(counted.name).toBe(site.name);
});
