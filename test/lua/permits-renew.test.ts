import { describe, expect, test } from "vitest";
import { permitsRenew } from "../../src/scripts/generated.js";
import { FORBIDDEN, forms, later, MOST, scored, text } from "./bench.js";
import { hex, LONG_GONE, MINE, THEIRS, useBench } from "./counts.js";

const bench = useBench();

describe.each(forms(permitsRenew))("permits/renew, %s", (form) => {
  const renew = (lease: number, ...pairs: [leases: string, member: string][]) =>
    bench().runner(permitsRenew, form)(
      { leases: pairs.map(([leases]) => leases) },
      { lease, ids: pairs.map(([, member]) => hex(member)) },
    );

  test("1: raised, kept where it is higher; twice is as good as once", async () => {
    await bench().put({ a: scored({ [MINE]: 15_000, [THEIRS]: 90_000 }), b: scored({ [MINE]: 1_000 }) });
    for (const _ of [1, 2]) {
      expect(await renew(30_000, ["a", MINE], ["a", THEIRS], ["b", MINE])).toEqual([1, 1, 1]);
      await bench().expect({
        a: scored({ [MINE]: later(30_000), [THEIRS]: 90_000 }),
        b: scored({ [MINE]: later(30_000) }),
      });
    }
    expect(await bench().heard()).toEqual([]);
  });

  test("0: what is gone, over or not ours stays so, and its neighbours are renewed", async () => {
    const theirs = {
      other: scored({ [THEIRS]: 15_000 }),
      text: text("theirs", 15_000),
      list: { value: ["theirs"], ttl: -1 },
    };
    await bench().put({
      ...theirs,
      ended: scored({ [MINE]: 0, [LONG_GONE]: -9_000 }),
      mine: scored({ [MINE]: 15_000 }),
    });
    const keys = ["list", "gone", "other", "text", "mine", "ended"];
    const pairs = keys.map((key): [string, string] => [key, MINE]);
    expect(await renew(30_000, ...pairs, ["ended", LONG_GONE], ["mine", MINE])).toEqual([
      0, 0, 0, 0, 1, 0, 0, 1,
    ]);
    await bench().expect({
      ...theirs,
      ended: scored({ [MINE]: 0, [LONG_GONE]: -9_000 }),
      mine: scored({ [MINE]: later(30_000) }),
    });
  });

  test("every byte of an id stands for itself", async () => {
    const id = "000a0d7f80c3bfff25001f2e7d5b5c61";
    await bench().put({});
    const [seconds = 0] = (await bench().redis.time()).map(Number);
    const soon = (seconds + 10) * 1_000;
    await bench().redis.zadd("a", soon, Buffer.from(id, "hex"));
    expect(await bench().runner(permitsRenew, form)({ leases: ["a"] }, { lease: 60_000, ids: [id] })).toEqual(
      [1],
    );
    expect(Number(await bench().redis.zscore("a", Buffer.from(id, "hex")))).toBeGreaterThan(soon + 30_000);
    expect(await bench().redis.zcard("a")).toBe(1);
  });

  test("a permit that lasts for ever does so", async () => {
    await bench().put({});
    await bench().redis.zadd("a", 922337203685477, MINE);
    expect(await renew(30_000, ["a", MINE])).toEqual([1]);
    expect(await bench().redis.zscore("a", MINE)).toBe("922337203685477");
  });

  test("a TTL is kept", async () => {
    await bench().put({ a: scored({ [MINE]: 15_000 }, 20_000) });
    expect(await renew(30_000, ["a", MINE])).toEqual([1]);
    await bench().expect({ a: scored({ [MINE]: later(30_000) }, 20_000) });
  });

  test("the largest lease survives", async () => {
    await bench().put({ a: scored({ [MINE]: 15_000 }) });
    expect(await renew(MOST, ["a", MINE])).toEqual([1]);
    expect(Number(await bench().redis.zscore("a", MINE))).toBeGreaterThanOrEqual(MOST);
  });

  test("many at once, in their order, and without memory", async () => {
    const members = Array.from({ length: 300 }, (_, i) => `permit number ${i}`);
    const even = members.filter((_, i) => i % 2 === 0);
    const before = Object.fromEntries(even.map((member) => [member, 15_000]));
    await bench().put({ a: scored(before) });
    await bench().outOfMemory(async () => {
      await expect(
        renew(30_000, ...members.map((member): [string, string] => ["a", member])),
      ).resolves.toEqual(members.map((_, i) => (i % 2 === 0 ? 1 : 0)));
    });
    await bench().expect({ a: scored(Object.fromEntries(even.map((member) => [member, later(30_000)]))) });
  });

  test("one alone, without memory", async () => {
    await bench().put({ a: scored({ [MINE]: 15_000 }) });
    await bench().outOfMemory(async () => {
      expect(await renew(30_000, ["a", MINE])).toEqual([1]);
    });
    await bench().expect({ a: scored({ [MINE]: later(30_000) }) });
  });

  test.each(["time", "zadd"])("who may not %s is told so", async (command) => {
    const limited = bench().runner(permitsRenew, form, await bench().without(command));
    await bench().put({ a: scored({ [MINE]: 15_000 }) });
    await expect(limited({ leases: ["a"] }, { lease: 30_000, ids: [hex(MINE)] })).rejects.toThrow(FORBIDDEN);
    await bench().expect({ a: scored({ [MINE]: 15_000 }) });
  });
});
