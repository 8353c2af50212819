/** A semaphore: what each call makes of the number of free permits, what it announces, and what it costs. */
import { describe, expect, test } from "vitest";
import { manyAtOnce, ownCommand, useStage } from "../faults/harness.js";
import { hear } from "./hear.js";
import { permitChannel, Site } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent("permits are counted", () => {
  test("trySetPermits sets the number once and announces it", async () => {
    await using site = await Site.of(stage, {}, {});
    await using heard = await hear(stage, permitChannel(site.name));
    expect(await site.semaphore(0).trySetPermits(5)).toBe(true);
    expect(await site.semaphore(1).trySetPermits(9)).toBe(false);
    expect(await site.semaphore(0).trySetPermits(5)).toBe(false);
    expect(await heard.messages()).toEqual(["5"]);
    await site.expectOnly("5");
  });

  test("a semaphore may begin with no permits", async () => {
    await using site = await Site.of(stage);
    expect(await site.semaphore().trySetPermits(0)).toBe(true);
    expect(await site.semaphore().trySetPermits(1)).toBe(false);
    expect(await site.semaphore().tryAcquire()).toBe(false);
    await site.expectOnly("0");
  });

  test("acquire and tryAcquire take, release gives back, by any client", async () => {
    await using site = await Site.of(stage, {}, {});
    const [mine, theirs] = [site.semaphore(0), site.semaphore(1)];
    await mine.trySetPermits(6);
    expect(await mine.acquire()).toBeUndefined();
    expect(await site.value()).toBe("5");
    await mine.acquire(3);
    expect(await site.value()).toBe("2");
    expect(await theirs.tryAcquire(2)).toBe(true);
    expect(await site.value()).toBe("0");
    expect(await theirs.tryAcquire()).toBe(false);
    expect(await theirs.release(4)).toBeUndefined();
    expect(await site.value()).toBe("4");
    expect(await mine.availablePermits()).toBe(4);
    await site.expectOnly("4");
  });

  test("what Redis does not count any more is refused: nothing is given back, and nothing is lost", async () => {
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

  test("who asks for more than there are gets none of them", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(5);
    expect(await site.semaphore().tryAcquire(6)).toBe(false);
    await site.expectOnly("5");
    expect(await site.semaphore().tryAcquire(5)).toBe(true);
    await site.expectOnly("0");
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

  test("release may give more than was taken, as Redisson's does", async () => {
    await using site = await Site.of(stage);
    await using heard = await hear(stage, permitChannel(site.name));
    await site.semaphore().trySetPermits(1);
    await site.semaphore().release(4);
    expect(await heard.messages()).toEqual(["1", "5"]);
    await site.expectOnly("5");
  });

  test("addPermits adds and announces the new total", async () => {
    await using site = await Site.of(stage);
    await using heard = await hear(stage, permitChannel(site.name));
    await site.semaphore().trySetPermits(2);
    expect(await site.semaphore().addPermits(3)).toBeUndefined();
    expect(await heard.messages()).toEqual(["2", "5"]);
    await site.expectOnly("5");
  });

  test("drainPermits takes all and says how many", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(7);
    expect(await site.semaphore().drainPermits()).toBe(7);
    expect(await site.semaphore().drainPermits()).toBe(0);
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

  test("an integer beyond what Lua counts exactly is not rounded", async () => {
    await using site = await Site.of(stage);
    await site.redis.set(site.name, "9007199254740991"); // 2^53 - 1
    await site.semaphore().acquire(2);
    await site.expectOnly("9007199254740989");
  });
});

describe.concurrent("a semaphore that is missing", () => {
  test("has no permits, and asking for them makes no key", async () => {
    await using site = await Site.of(stage);
    expect(await site.semaphore().availablePermits()).toBe(0);
    expect(await site.semaphore().tryAcquire()).toBe(false);
    expect(await site.semaphore().drainPermits()).toBe(0);
    await site.expectOnly(null);
  });

  test("is made by release and addPermits, as by Redisson's", async () => {
    await using site = await Site.of(stage);
    await using heard = await hear(stage, permitChannel(site.name));
    await site.semaphore().release(2);
    await site.expectOnly("2");
    await site.redis.del(site.name);
    await site.semaphore().addPermits(3);
    await site.expectOnly("3");
    expect(await heard.messages()).toEqual(["2", "3"]);
  });
});

describe.concurrent("a semaphore with a TTL", () => {
  test("keeps it, whatever is called", async () => {
    await using site = await Site.of(stage);
    const semaphore = site.semaphore();
    const calls: (() => Promise<unknown>)[] = [
      () => semaphore.acquire(2),
      () => semaphore.tryAcquire(),
      () => semaphore.release(2),
      () => semaphore.addPermits(2),
      () => semaphore.drainPermits(),
      () => semaphore.trySetPermits(3),
      () => semaphore.availablePermits(),
    ];
    for (const call of calls) {
      await site.redis.set(site.name, "5", "PX", 600_000);
      await call();
      const { ttl } = await site.state();
      expect(ttl).toBeGreaterThan(500_000);
      expect(ttl).toBeLessThanOrEqual(600_000);
    }
  });
});

describe.concurrent("a semaphore in debt", () => {
  test("never announces a number below 0", async () => {
    await using site = await Site.of(stage);
    await using heard = await hear(stage, permitChannel(site.name));
    await site.redis.set(site.name, "-5");
    await site.semaphore().release(2);
    expect(await site.semaphore().availablePermits()).toBe(-3);
    expect(await site.semaphore().tryAcquire()).toBe(false);
    await site.semaphore().addPermits(2);
    await site.expectOnly("-1");
    expect((await heard.messages()).filter((message) => Number(message) < 0)).toEqual([]);
    await site.semaphore().release(3);
    expect((await heard.messages()).at(-1)).toBe("2");
  });
});

describe.concurrent("what it costs", () => {
  test("one command to take permits, one to give them back, one for each other call", async () => {
    await using site = await Site.of(stage, { split: true });
    const semaphore = site.semaphore();
    const calls: (() => Promise<unknown>)[] = [
      () => semaphore.trySetPermits(9),
      () => semaphore.acquire(),
      () => semaphore.acquire(3),
      () => semaphore.tryAcquire(),
      () => semaphore.tryAcquire(1, 5_000),
      () => semaphore.release(),
      () => semaphore.release(3),
      () => semaphore.addPermits(2),
      () => semaphore.availablePermits(),
      () => semaphore.drainPermits(),
    ];
    for (const call of calls) {
      site.bed(0).proxy.clear();
      await call();
      expect(site.bed(0).proxy.commands.map(({ command }) => command[0])).toHaveLength(1);
    }
    await semaphore.release();
    site.bed(0).proxy.clear();
    await semaphore.run(() => {});
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
});

test("a prefix is put before the name", async () => {
  await using site = await Site.of(stage, { prefix: "app" });
  await using heard = await hear(stage, permitChannel(`app:${site.name}`));
  expect(site.semaphore().name).toBe(site.name);
  await site.semaphore().release(2);
  expect(await site.redis.get(`app:${site.name}`)).toBe("2");
  expect(await site.redis.exists(site.name)).toBe(0);
  expect(await heard.messages()).toEqual(["2"]);
});
