import { describe, expect, test } from "vitest";
import { manyAtOnce, useStage } from "../faults/harness.js";
import { hear } from "./hear.js";
import { latchChannel, Site } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent("a latch", () => {
  test("trySetCount sets the count once, and announces it", async () => {
    await using site = await Site.of(stage, {}, {});
    await using heard = await hear(stage, latchChannel(site.name));
    expect(await site.latch(0).trySetCount(3)).toBe(true);
    expect(await site.latch(1).trySetCount(5)).toBe(false);
    expect(await heard.messages()).toEqual(["1"]);
    await site.expectOnly("3");
  });

  test("countDown counts, by any client, and at 0 nothing is left", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.latch().trySetCount(3);
    await using heard = await hear(stage, latchChannel(site.name));
    expect(await site.latch(0).countDown()).toBeUndefined();
    expect(await site.latch(1).getCount()).toBe(2);
    await site.latch(1).countDown();
    await site.expectOnly("1");
    expect(await heard.messages()).toEqual([]);
    await site.latch(0).countDown();
    expect(await heard.messages()).toEqual(["0"]);
    await site.expectOnly(null);
    expect(await site.latch().getCount()).toBe(0);
  });

  test("countDown of a missing latch announces nothing and leaves nothing", async () => {
    await using site = await Site.of(stage);
    await using heard = await hear(stage, latchChannel(site.name));
    await site.latch().countDown();
    await site.latch().countDown();
    expect(await heard.messages()).toEqual([]);
    await site.expectOnly(null);
    expect(await site.latch().getCount()).toBe(0);
  });

  test("can be set again once it is open", async () => {
    await using site = await Site.of(stage);
    await site.latch().trySetCount(1);
    await site.latch().countDown();
    expect(await site.latch().trySetCount(2)).toBe(true);
    await site.expectOnly("2");
  });

  test("many that count down at once are all counted", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.latch().trySetCount(101);
    await Promise.all(Array.from({ length: 100 }, (_, i) => site.latch(i % 2).countDown()));
    await site.expectOnly("1");
  });

  test("a prefix is put before the name", async () => {
    await using site = await Site.of(stage, { prefix: "app" });
    await using heard = await hear(stage, latchChannel(`app:${site.name}`));
    await site.latch().trySetCount(1);
    expect(await site.redis.get(`app:${site.name}`)).toBe("1");
    await site.latch().countDown();
    expect(await heard.messages()).toEqual(["1", "0"]);
    expect(site.latch().name).toBe(site.name);
  });

  test("each call is one command; an await of an open latch is one too", async () => {
    await using site = await Site.of(stage, { split: true });
    const calls: (() => Promise<unknown>)[] = [
      () => site.latch().await(),
      () => site.latch().trySetCount(2),
      () => site.latch().getCount(),
      () => site.latch().await(0),
      () => site.latch().countDown(),
      () => site.latch().countDown(),
    ];
    for (const call of calls) {
      site.bed(0).proxy.clear();
      await call();
      expect(site.bed(0).proxy.commands.map(({ command }) => command[0])).toHaveLength(1);
    }
  });
});
