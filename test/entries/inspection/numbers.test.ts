/** `inspect` and `list` of semaphores, permits and latches: what they show of a number, and what that costs. */
import { describe, expect, test } from "vitest";
import { manyAtOnce, Stage, useStage } from "../../faults/harness.js";
import { NO_LEASE, Site } from "../../kinds/semaphores/helpers.js";
import { listed, namesOf } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");
const ALL = { kinds: "all" } as const;
const id = (i: number): string => i.toString(16).padStart(32, "0");

test("of a text that is no number a few bytes are read, however long it is [B102]", async () => {
  await using own = await Stage.start(["standalone"]);
  await using site = await Site.of(own);
  await site.redis.set("page", "x".repeat(5_000_000));
  await site.redis.set("digits", "7".repeat(5_000_000));
  await site.redis.set(site.name, 7);
  await site.redis.config("RESETSTAT");
  expect(await namesOf(site.client(0), ALL)).toEqual([site.name]);
  await expect(site.client(0).inspect("page", ALL)).rejects.toMatchObject({ code: "WRONG_DATA" });
  await expect(site.client(0).inspect("digits", ALL)).rejects.toMatchObject({ code: "WRONG_DATA" });
  expect(await site.redis.info("commandstats")).not.toMatch(/^cmdstat_get:/m);
});

describe.concurrent.each(["standalone", "cluster"] as const)("%s", (topology) => {
  test("permits whose leases have ended count as free, and are left as they are [B101]", async () => {
    await using site = await Site.of(stage, { topology });
    await site.permits().trySetPermits(5);
    await site.redis.decrby(site.name, 4);
    const now = await site.now();
    await site.enter(id(1), now - 60_000);
    await site.enter(id(2), now - 1);
    await site.enter(id(3), now + 60_000);
    await site.enter(id(4), NO_LEASE);
    const before = await site.lasting();
    const shown = { name: site.name, kind: "permits", permits: 3, limit: 5 };
    expect(await site.client(0).inspect(site.name, ALL)).toMatchObject(shown);
    expect(await listed(site.client(0), { ...ALL, match: site.name })).toMatchObject([shown]);
    expect(await site.lasting()).toEqual(before);
    expect(await site.permits().availablePermits()).toBe(3);
    expect(await site.permits().getPermits()).toBe(5);
  });

  test("permits of others that have all lapsed are permits all the same", async () => {
    await using site = await Site.of(stage, { topology });
    await site.redis.set(site.name, 0);
    await site.enter(id(1), (await site.now()) - 1);
    expect(await site.client(0).inspect(site.name, ALL)).toMatchObject({
      kind: "permits",
      permits: 1,
      limit: 1,
    });
  });
});
