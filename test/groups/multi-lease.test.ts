/** How long a hold on a MultiLock lasts: as long as its members' shortest hold, counted from the last grant. */
import { describe, expect, test } from "vitest";
import { MultiLock } from "../../src/index.js";
import { KINDS } from "../contract/kinds.js";
import { failsSoon, script, soon, watch } from "../faults/harness.js";
import { SLACK, until } from "../support/index.js";
import { Hall, useStages } from "./helpers.js";

const stages = await useStages();

describe.concurrent("without a lease", () => {
  test("the watchdog of each member's client keeps it, and the least deadline counts", async () => {
    await using hall = await Hall.of(stages, { watchdogTimeout: 4_500 }, { server: 1 });
    const hold = await new MultiLock(hall.lock(1, "a"), hall.lock(0, "b")).lock();
    expect(hold.remaining).toBeLessThanOrEqual(4_500);
    expect(hold.members.map(({ remaining }) => remaining > 4_500)).toEqual([true, false]);
    const renewed: string[] = [];
    hall.client(0).on("renewed", ({ lockName }) => renewed.push(lockName));
    await until("it was renewed for longer than its lease", () => renewed.length >= 4);
    expect(hold.isHeld).toBe(true);
    expect(hold.remaining).toBeGreaterThan(0);
    await hold.unlock();
    expect(hold.remaining).toBe(0);
    await hall.expectNothingLeft();
  });
});

describe.concurrent("with a lease", () => {
  for (const kind of KINDS) {
    test(`all keys have it, and nobody renews it: two of kind ${kind.name}`, async () => {
      await using hall = await Hall.of(stages, { watchdogTimeout: 4_500 }, { server: 1 });
      const multi = new MultiLock(hall.lock(0, "a", kind), hall.lock(1, "b", kind));
      const hold = await multi.lock({ lease: 20_000 });
      for (const [i, word] of [[0, "a"] as const, [1, "b"] as const]) {
        expect(await hall.ttl(i, word)).toBeGreaterThan(10_000);
        expect(await hall.ttl(i, word)).toBeLessThanOrEqual(20_000);
      }
      expect(hold.remaining).toBeGreaterThan(10_000);
      expect(hold.remaining).toBeLessThan(20_000);
      await hold.unlock();
      const short = await multi.lock({ lease: 2_500 });
      for (const [i, word] of [[0, "a"] as const, [1, "b"] as const]) {
        expect(await hall.ttl(i, word)).toBeLessThanOrEqual(2_500);
      }
      await until("it has lapsed", () => short.signal.aborted);
      expect(short.signal.reason).toMatchObject({ lockName: multi.name, reason: "expired" });
      await expect(short.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      await hall.expectNothingLeft();
    });
  }

  test("a wait that ends while the members get it is over without the lock, if Redis answers [B47]", async () => {
    // Redis counts as away only after it was silent for a tenth of commandTimeout.
    await using hall = await Hall.of(stages, { commandTimeout: 600_000 }, {});
    const multi = hall.multi(0, "a", "b");
    hall.bed(0).proxy.delayReplies(60_000, script("extend"));
    const theirs = await hall.lock(1, "b").lock();
    const call = await hall.parked("b", () => multi.tryLock(3_000, 100_000));
    await theirs.unlock();
    expect(await soon(call)).toBeNull();
    // No other owner had the lock, so the error is not WAIT_TIMEOUT.
    await expect(multi.lock({ wait: 300, lease: 100_000 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    hall.bed(0).proxy.restore();
    await hall.expectNothingLeft();
  });

  test("it begins when the last member is granted, and until then the watchdog keeps the others", async () => {
    await using hall = await Hall.of(stages, { watchdogTimeout: 4_500 }, { server: 1 });
    hall.bed(1).proxy.delayReplies(4_000, script("acquire"));
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"));
    const call = watch(multi.lock({ lease: 3_500 }));
    const hold = await soon(call);
    expect(call.took).toBeGreaterThan(3_900);
    // The first member was granted longer ago than the lease lasts.
    expect(hold.isHeld).toBe(true);
    expect(hold.remaining).toBeGreaterThan(0);
    expect(hold.remaining).toBeLessThanOrEqual(3_500);
    expect(await hall.ttl(0, "a")).toBeGreaterThan(0);
    const renewals = hall.scripts(0).filter(({ command }) => script("renew")(command)).length;
    expect(renewals).toBeGreaterThanOrEqual(2);
    await until("it lapses, renewed by nobody", () => hold.signal.aborted);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await hall.expectNothingLeft();
  });

  test("a long one is asked for with each member, by one command", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
    // On a busy machine a member may now and then take so long that the lease begins anew for all.
    await until("no member took long", async () => {
      for (const i of [0, 1]) hall.bed(i).proxy.clear();
      const hold = await multi.lock({ lease: 600_000 });
      const sent = [0, 1].map((i) => hall.scripts(i).map(({ command }) => script("acquire")(command)));
      for (const [i, word] of ["a", "b"].entries()) {
        expect(await hall.ttl(i, word)).toBeGreaterThan(500_000);
      }
      expect(hold.remaining).toBeGreaterThan(600_000 * 0.98 - 2);
      await hold.unlock();
      return sent.every((scripts) => scripts.length === 1 && scripts[0]);
    });
    await hall.expectNothingLeft();
  });

  test("where the last member took long, a long one begins anew for all", async () => {
    await using hall = await Hall.of(stages, { commandTimeout: 6_000 }, { server: 1, commandTimeout: 6_000 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
    hall.bed(1).proxy.delayReplies(1_000, script("acquire"));
    const hold = await multi.lock({ lease: 20_000 });
    for (const i of [0, 1]) {
      const scripts = hall.scripts(i).map(({ command }) => script("extend")(command));
      expect(scripts).toEqual([false, true]);
    }
    expect(hold.remaining).toBeGreaterThan(10_000);
    await hold.unlock();
    await hall.expectNothingLeft();
  });

  test("waiting counts for nothing either: the lease begins after it", async () => {
    await using hall = await Hall.of(stages, {}, {});
    const theirs = await hall.lock(1, "b").lock({ lease: 5_500 });
    const call = await hall.parked("b", () => hall.multi(0, "a", "b").lock({ lease: 6_000 }));
    await until("it lapses", () => theirs.signal.aborted);
    const hold = await soon(call);
    expect(hold.remaining).toBeGreaterThan(1_000);
    for (const word of ["a", "b"]) expect(await hall.ttl(0, word)).toBeLessThanOrEqual(6_000);
    await hold.unlock();
  });

  test("a lease that is over when it begins: LOCK_LOST, and nothing is left", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
    await expect(multi.lock({ lease: 1 })).rejects.toMatchObject({ code: "LOCK_LOST" });
    await expect(multi.tryLock(0, 1)).rejects.toMatchObject({ code: "LOCK_LOST" });
    hall.bed(1).proxy.delayReplies(1_200, script("extend"));
    await expect(multi.lock({ lease: 1_000 })).rejects.toMatchObject({
      code: "LOCK_LOST",
      reason: "expired",
    });
    await hall.expectNothingLeft();
  });

  test("the call is over within its wait, also when the lease is slow to begin", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
    await multi.run(() => {});
    hall.bed(1).proxy.delayReplies(8_000, script("extend"));
    const call = watch(multi.lock({ wait: 2_000, lease: 20_000 }));
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    expect(call.took).toBeLessThan(2_000 + SLACK); // far less than one command may take
    hall.bed(1).proxy.restore();
    await hall.expectNothingLeft();
  });
});

describe.concurrent("extend", () => {
  test("sets all members' deadlines, up or down", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const hold = await new MultiLock(hall.lock(0, "a"), hall.lock(1, "b")).lock({ lease: 10_000 });
    await hold.extend(60_000);
    expect(hold.remaining).toBeGreaterThan(40_000);
    for (const [i, word] of ["a", "b"].entries()) expect(await hall.ttl(i, word)).toBeGreaterThan(40_000);
    await hold.extend(5_000);
    expect(hold.remaining).toBeLessThanOrEqual(5_000);
    for (const [i, word] of ["a", "b"].entries()) expect(await hall.ttl(i, word)).toBeLessThanOrEqual(5_000);
    await hold.members[1]?.extend(2_000);
    expect(hold.remaining).toBeLessThanOrEqual(2_000);
    await hold.unlock();
    await expect(hold.extend(10_000)).rejects.toMatchObject({ code: "NOT_OWNER", lockName: hold.lockName });
  });

  test("LOCK_LOST if a member is gone, and the others are given back", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"));
    const hold = await multi.lock({ lease: 30_000 });
    await hall.del(1, "b");
    const gone = { code: "LOCK_LOST", lockName: multi.name, reason: "expired" };
    await expect(hold.extend(40_000)).rejects.toMatchObject(gone);
    expect(hold.isHeld).toBe(false);
    await expect(hold.extend(40_000)).rejects.toMatchObject(gone);
    await hall.expectNothingLeft();
    await expect(hold.unlock()).rejects.toMatchObject(gone);
  });
});
