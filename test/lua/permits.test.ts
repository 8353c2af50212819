import { describe, expect, test } from "vitest";
import {
  permitsAcquire,
  permitsRelease,
  permitsRenew,
  permitsSet,
  permitsState,
  permitsUpdate,
} from "../../src/scripts/generated.js";
import type { ArgumentValues, KeyValues, Script } from "../../src/scripts/script.js";
import {
  type Form,
  forms,
  later,
  left,
  MOST,
  type Scores,
  type State,
  type States,
  scored,
  text,
  useBench,
} from "./bench.js";
import {
  answered,
  ENDLESS,
  hex,
  JUST_GONE,
  LEASES,
  LONG_GONE,
  MARKER,
  MARKER_TTL,
  MINE,
  marked,
  NUMBER,
  number,
  OTHER_DATA,
  PERMIT_CHANNEL,
  THEIRS,
  told,
  tombstoneOf,
} from "./counts.js";
import { each, type Row, scriptTable, WRONGTYPE } from "./table.js";

const bench = await useBench(PERMIT_CHANNEL);

const [FORM = "legacy"] = forms(permitsState);
/** The end of the lease that Redisson gives to a permit taken without one. */
const NEVER = { at: 922337203685477 };
const TOMBSTONE = tombstoneOf(MINE);

type Members = Scores["members"];
/** The number of free permits, the permits in use, and the traces of calls. */
const permits = (free: number | string, out: Members = {}, marks: States = {}, ttl = -1): States => ({
  [NUMBER]: number(free, ttl),
  ...leased(out, ttl),
  ...marks,
});
const leased = (out: Members, ttl = -1): States =>
  Object.keys(out).length > 0 ? { [LEASES]: scored(out, ttl) } : {};
const done: States = { [MARKER]: marked(7) };
const ended = (call: string): States => ({ [TOMBSTONE]: marked(call) });
const twoOut = { [MINE]: 30_000, [THEIRS]: 60_000 };
const lapsed = { [LONG_GONE]: -9_000, [JUST_GONE]: 0 };

/** Rows with other data in the keys, which must stay; with these permits in use. */
const otherData = (out: Members): Record<string, Row<object, object>> => ({
  ...each("other data is left alone: %s", OTHER_DATA, ([state, reply]: readonly [State, unknown]) => ({
    given: { [NUMBER]: state, ...leased(out) },
    reply,
  })),
  "other data where the leases should be is left alone": {
    given: { [NUMBER]: number(5), [LEASES]: text("theirs", -1) },
    reply: WRONGTYPE,
  },
});
const WHOLE = { 0: 0, 7: 7, "-7": -7 };

scriptTable(bench, permitsAcquire, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: TOMBSTONE },
  args: { id: hex(MINE), lease: 30_000, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "1: taken": {
      given: permits(5),
      reply: [1, 4, left(30_000)],
      after: permits(4, { [MINE]: later(30_000) }),
    },
    "1: granted before, its lease is raised": {
      given: permits(4, { [MINE]: 20_000 }),
      reply: [1, 4, left(30_000)],
      after: permits(4, { [MINE]: later(30_000) }),
    },
    "1: granted before, its lease is not lowered": {
      given: permits(4, { [MINE]: 60_000 }),
      reply: [1, 4, left(60_000)],
    },
    "0: none is free; it says when the next lease ends": {
      given: permits(0, { [THEIRS]: 25_000, other: 50_000 }),
      reply: [0, 0, left(25_000)],
    },
    "1: it says when the next lease of all ends": {
      given: permits(2, { [THEIRS]: 15_000 }),
      reply: [1, 1, left(15_000)],
      after: permits(1, { [THEIRS]: 15_000, [MINE]: later(30_000) }),
    },
    ...each(
      "0: all are out for ever, or missing: %s",
      {
        "0 are free": permits(0, { [THEIRS]: NEVER }),
        "-2 are free": permits(-2, { [THEIRS]: NEVER }),
        "0 are free, and none is out": permits(0),
        "-2 are free, and none is out": permits(-2),
        "there is no semaphore": {},
      },
      (given: States) => ({ given, mayNot: "decrby", reply: [0, 0, -1] }),
    ),
    "a lease that ends just before never does end": {
      given: permits(0, { [THEIRS]: { at: NEVER.at - 1 } }),
      reply: [0, 0, expect.toSatisfy((ms: number) => ms > 900_000_000_000_000)],
    },
    "leases that are over free their permits, which is announced": {
      given: permits(0, { ...lapsed, [THEIRS]: 25_000 }),
      reply: [1, 1, left(25_000)],
      after: permits(1, { [THEIRS]: 25_000, [MINE]: later(30_000) }),
      heard: told(2),
      even: ["mute"],
    },
    "its own lease that is over is no grant: it is taken anew": {
      given: permits(0, { [MINE]: -1 }),
      reply: [1, 0, left(30_000)],
      after: permits(0, { [MINE]: later(30_000) }),
      heard: told(1),
    },
    "what comes back to a semaphore in debt is not announced, and not granted": {
      given: permits(-2, { [LONG_GONE]: -1 }),
      reply: [0, 0, -1],
      after: permits(-1),
    },
    "granted before, while the free ones are below 0: it says 0": {
      given: permits(-2, { [MINE]: 50_000 }),
      reply: [1, 0, left(50_000)],
    },
    "2: an id that is over gets nothing, and nothing is looked at": {
      given: permits(5, { [LONG_GONE]: -1 }, { [TOMBSTONE]: text("over", 20_000) }),
      reply: [2, 0, 0],
    },
    "leases get the TTL of the permits, which is kept": {
      given: permits(5, {}, {}, 40_000),
      reply: [1, 4, left(30_000)],
      after: permits(4, { [MINE]: later(30_000) }, {}, 40_000),
    },
    "leases get no TTL where the permits have none": {
      given: permits(5, { [THEIRS]: 10_000 }),
      reply: [1, 4, left(10_000)],
      after: permits(4, { [THEIRS]: 10_000, [MINE]: later(30_000) }),
    },
    "the largest lease survives": {
      given: permits(1),
      args: { lease: MOST },
      reply: [1, 0, -1],
      after: permits(0, { [MINE]: later(MOST) }),
    },
    "the largest lease is not lowered": {
      given: permits(0, { [MINE]: MOST }),
      args: { lease: 1 },
      reply: [1, 0, -1],
    },
    ...otherData({ [LONG_GONE]: -1 }),
    "-7 is read without a write": { given: permits(-7), mayNot: "decrby", reply: [0, 0, -1] },
    "a number of 18 digits is counted exactly": {
      given: permits("123456789012345678"),
      reply: [1, expect.any(Number), left(30_000)],
      after: permits("123456789012345677", { [MINE]: later(30_000) }),
    },
  },
  rights: {
    "a lease is over": {
      given: permits(0, { [LONG_GONE]: -1 }, {}, 30_000),
      commands: "exists time get zremrangebyscore incrby",
    },
    "a lease is over, and its permit is free by then": {
      given: permits(0, { [LONG_GONE]: -1 }, {}, 30_000),
      commands: "zscore decrby zadd pttl pexpire zrange",
      heard: told(1),
    },
  },
});

scriptTable(bench, permitsRelease, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: TOMBSTONE },
  args: { id: hex(MINE), call: "my call", tombstoneTtl: MARKER_TTL, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "1: given back and announced": {
      given: permits(3, { [MINE]: 30_000, [THEIRS]: 20_000 }),
      reply: 1,
      after: permits(4, { [THEIRS]: 20_000 }, ended("my call")),
      heard: told(4),
      even: ["out of memory", "mute"],
    },
    "0: another call finds that it was given back": { given: permits(4, {}, ended("first")), reply: 0 },
    "0: an id that nobody has is over from now on": {
      given: permits(3, { [THEIRS]: 20_000 }),
      reply: 0,
      after: permits(3, { [THEIRS]: 20_000 }, ended("over")),
    },
    "0: an id that is over stays over, however it is called": {
      given: permits(3, { [MINE]: 30_000 }, { [TOMBSTONE]: text("over", 20_000) }),
      reply: 0,
    },
    "0: its lease is over; the permit is free all the same, and that is announced": {
      given: permits(3, { [MINE]: 0, [LONG_GONE]: -50_000 }),
      reply: 0,
      after: permits(5, {}, ended("over")),
      heard: told(5),
    },
    "a semaphore in debt: nothing is announced": {
      given: permits(-2, { [MINE]: 30_000 }),
      reply: 1,
      after: permits(-1, {}, ended("my call")),
    },
    "TTLs are kept": {
      given: permits(3, { [MINE]: 20_000, [THEIRS]: 20_000 }, {}, 30_000),
      reply: 1,
      after: permits(4, { [THEIRS]: 20_000 }, ended("my call"), 30_000),
      heard: told(4),
    },
    ...otherData({ [MINE]: 30_000 }),
    ...each("%s is read without a write", WHOLE, (free) => ({
      given: permits(free, { [MINE]: 30_000 }),
      mayNot: "decrby",
      reply: 1,
      after: permits(free + 1, {}, ended("my call")),
      heard: free + 1 > 0 ? told(free + 1) : [],
    })),
    "a number of 18 digits is counted exactly": {
      given: permits("123456789012345678"),
      reply: 0,
      after: permits("123456789012345678", {}, ended("over")),
    },
  },
  rights: {
    "it is out": {
      given: permits(3, { [MINE]: 30_000 }),
      commands: "get time zremrangebyscore zscore set del zrem incrby",
    },
  },
});

const strangers: States = {
  other: scored({ [THEIRS]: 15_000 }),
  text: text("theirs", 15_000),
  list: { value: ["theirs"], ttl: -1 },
  ended: scored({ [MINE]: 0, [LONG_GONE]: -9_000 }),
};
const many = Array.from({ length: 300 }, (_, i) => `permit number ${i}`);
const everySecond = (end: Members[string]) =>
  Object.fromEntries(many.filter((_, i) => i % 2 === 0).map((id) => [id, end]));

scriptTable(bench, permitsRenew, {
  keys: { leases: [LEASES] },
  args: { lease: 30_000, ids: [hex(MINE)] },
  endless: /./,
  rows: {
    "1: raised, kept where it is higher": {
      given: { a: scored({ [MINE]: 15_000, [THEIRS]: 90_000 }), b: scored({ [MINE]: 1_000 }) },
      keys: { leases: ["a", "a", "b"] },
      args: { ids: [MINE, THEIRS, MINE].map(hex) },
      reply: [1, 1, 1],
      after: { a: scored({ [MINE]: later(30_000), [THEIRS]: 90_000 }), b: scored({ [MINE]: later(30_000) }) },
    },
    "0: what is gone, over or not ours stays so, and its neighbours are renewed": {
      given: { ...strangers, mine: scored({ [MINE]: 15_000 }) },
      keys: { leases: ["list", "gone", "other", "text", "mine", "ended", "ended", "mine"] },
      args: { ids: [MINE, MINE, MINE, MINE, MINE, MINE, LONG_GONE, MINE].map(hex) },
      reply: [0, 0, 0, 0, 1, 0, 0, 1],
      after: { ...strangers, mine: scored({ [MINE]: later(30_000) }) },
    },
    "a permit that lasts for ever does so": { given: leased({ [MINE]: NEVER }), reply: [1] },
    "a TTL is kept": {
      given: leased({ [MINE]: 15_000 }, 20_000),
      reply: [1],
      after: leased({ [MINE]: later(30_000) }, 20_000),
    },
    "the largest lease survives": {
      given: leased({ [MINE]: 15_000 }),
      args: { lease: MOST },
      reply: [1],
      after: leased({ [MINE]: later(MOST) }),
    },
    "many at once, in their order, and without memory": {
      given: leased(everySecond(15_000)),
      keys: { leases: many.map(() => LEASES) },
      args: { ids: many.map(hex) },
      outOfMemory: true,
      reply: many.map((_, i) => (i % 2 === 0 ? 1 : 0)),
      after: leased(everySecond(later(30_000))),
    },
    "one alone": {
      given: leased({ [MINE]: 15_000 }),
      reply: [1],
      after: leased({ [MINE]: later(30_000) }),
      even: ["out of memory"],
    },
  },
  rights: {
    "it is out": {
      given: leased({ [MINE]: 15_000 }),
      commands: "time zadd",
      after: leased({ [MINE]: 15_000 }),
    },
  },
});

scriptTable(bench, permitsSet, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { count: 9, call: 7, markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "more: the free ones are more, which is announced": {
      given: permits(3, twoOut),
      reply: answered(1),
      after: permits(7, twoOut, done),
      heard: told(9),
      even: ["mute"],
    },
    "set by an earlier run, it is left alone": { given: permits(12, twoOut, done), reply: answered(1) },
    "set by a later call, it is left alone": {
      given: permits(12, twoOut, { [MARKER]: marked(10) }),
      reply: answered(1),
    },
    "set by an earlier call, it is set anew": {
      given: permits(12, twoOut, { [MARKER]: marked(6) }),
      reply: answered(1),
      after: permits(7, twoOut, done),
      heard: told(9),
    },
    ...each("fewer: with two out, of %s there are two fewer free", { 4: 4, 2: 2, 1: 1, 0: 0 }, (count) => ({
      given: permits(3, twoOut),
      args: { count },
      reply: answered(1),
      after: permits(count - 2, twoOut, done),
      heard: told(count),
    })),
    "as many as there are: nobody is told": {
      given: permits(3, twoOut),
      args: { count: 5 },
      reply: answered(1),
      after: permits(3, twoOut, done),
    },
    "none, of a semaphore that is missing, is a number too": {
      args: { count: 0 },
      reply: answered(1),
      after: permits(0, {}, done),
      heard: told(0),
    },
    "a semaphore that is missing is made, without end": {
      reply: answered(1),
      after: permits(9, {}, done),
      heard: told(9),
    },
    "leases that are over do not count": {
      given: permits(1, { ...lapsed, [MINE]: 30_000 }),
      args: { count: 6 },
      reply: answered(1),
      after: permits(5, { [MINE]: 30_000 }, done),
      heard: [...told(3), ...told(6)],
    },
    "a TTL is kept": {
      given: permits(5, {}, {}, 30_000),
      reply: answered(1),
      after: permits(9, {}, done, 30_000),
      heard: told(9),
    },
    "of as many as Redis counts it leaves exactly so many": {
      given: permits(String(2n ** 63n - 1n), twoOut),
      reply: answered(1),
      after: permits(7, twoOut, done),
      heard: told(9),
    },
    ...otherData({ [LONG_GONE]: -1 }),
    ...each("%s is read without a write", WHOLE, (free) => ({
      given: permits(free),
      mayNot: "decrby",
      reply: answered(1),
      after: permits(9, {}, done),
      heard: told(9),
    })),
  },
  rights: {
    "two are out": {
      given: permits(5, twoOut),
      commands: "exists get time zremrangebyscore zcard set del",
    },
  },
});

scriptTable(bench, permitsState, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL },
  args: { publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    ...each("%s free, and how many are out; nothing changes", { 3: 3, 0: 0, "-2": -2 }, (free) => ({
      given: permits(free, twoOut, {}, 30_000),
      reply: [free, 2],
    })),
    "none at all, and none is made": { reply: [0, 0] },
    "leases that are over are taken back, which is announced": {
      given: permits(1, { ...lapsed, [MINE]: 30_000 }),
      reply: [3, 1],
      after: permits(3, { [MINE]: 30_000 }),
      heard: told(3),
      even: ["out of memory", "mute"],
    },
    ...each("what comes back to %s is not announced", { "-1": -1, "-2": -2 }, (free) => ({
      given: permits(free, { [LONG_GONE]: -1 }),
      reply: [free + 1, 0],
      after: permits(free + 1),
    })),
    "a permit that lasts for ever is never taken back": {
      given: permits(1, { [THEIRS]: NEVER }),
      reply: [1, 1],
    },
    ...otherData({ [LONG_GONE]: -1 }),
    ...each("%s is read without a write", WHOLE, (free) => ({
      given: permits(free, { [MINE]: 30_000 }),
      mayNot: "decrby",
      reply: [free, 1],
    })),
    "a number of 18 digits is counted exactly": {
      given: permits("123456789012345678"),
      reply: [Number("123456789012345678"), 0],
    },
  },
  rights: {
    "a lease is over": {
      given: permits(1, { [LONG_GONE]: -1 }),
      commands: "time get zremrangebyscore incrby",
    },
    "a lease is over, and its permit is free by then": {
      given: permits(1, { [LONG_GONE]: -1 }),
      commands: "zcard",
      heard: told(2),
    },
  },
});

scriptTable(bench, permitsUpdate, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { id: hex(MINE), lease: 20_000, call: 7, markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "1: a longer lease from now on": {
      given: permits(3, { [MINE]: 10_000, [THEIRS]: 70_000 }),
      reply: answered(1),
      after: permits(3, { [MINE]: later(20_000), [THEIRS]: 70_000 }, done),
      even: ["out of memory"],
    },
    ...each(
      "1: a lease that ends %s from now on, which is announced as one permit",
      { sooner: 60_000, "a little sooner": 21_000 },
      (before) => ({
        given: permits(3, { [MINE]: before, [THEIRS]: 70_000 }),
        reply: answered(1),
        after: permits(3, { [MINE]: later(20_000), [THEIRS]: 70_000 }, done),
        heard: told(1),
        even: ["mute"],
      }),
    ),
    "1: set by an earlier run, it is left alone": {
      given: permits(3, { [MINE]: 60_000 }, done),
      reply: answered(1),
    },
    "1: set by a later call, it is left alone": {
      given: permits(3, { [MINE]: 60_000 }, { [MARKER]: marked(10) }),
      reply: answered(1),
    },
    "1: set by an earlier call, it is set anew": {
      given: permits(3, { [MINE]: 10_000 }, { [MARKER]: marked(6) }),
      reply: answered(1),
      after: permits(3, { [MINE]: later(20_000) }, done),
    },
    "0: no such permit, and none is made": { given: permits(3, { [THEIRS]: 70_000 }), reply: answered(0) },
    "0: no semaphore, and none is made": { reply: answered(0) },
    "0: its lease is over; the permit is free, which is announced": {
      given: permits(3, { [MINE]: 0, [LONG_GONE]: -9_000 }),
      reply: answered(0),
      after: permits(5),
      heard: told(5),
    },
    ...each("%s is read without a write", WHOLE, (free) => ({
      given: permits(free, { [MINE]: 10_000 }),
      mayNot: "decrby",
      reply: answered(1),
      after: permits(free, { [MINE]: later(20_000) }, done),
    })),
    "a number of 18 digits is counted exactly": { given: permits("123456789012345678"), reply: answered(0) },
    "the TTL of the leases is kept": {
      given: permits(3, { [MINE]: 10_000 }, {}, 30_000),
      reply: answered(1),
      after: permits(3, { [MINE]: later(20_000) }, done, 30_000),
    },
    "the largest lease survives": {
      given: permits(3, { [MINE]: 10_000 }),
      args: { lease: MOST },
      reply: answered(1),
      after: permits(3, { [MINE]: later(MOST) }, done),
    },
    ...otherData({ [MINE]: 30_000, [LONG_GONE]: -1 }),
    "leases that are over are taken back": {
      given: permits(3, { [MINE]: 10_000, [LONG_GONE]: -1 }),
      reply: answered(1),
      after: permits(4, { [MINE]: later(20_000) }, done),
      heard: told(4),
      even: ["mute"],
    },
  },
  rights: {
    "it is out": {
      given: permits(5, { [MINE]: 10_000 }),
      commands: "get time zremrangebyscore zscore zadd set del",
    },
  },
});

describe("every byte of an id stands for itself", () => {
  const id = "000a0d7f80c3bfff25001f2e7d5b5c61";
  const bytes = Buffer.from(id, "hex");
  const keys = {
    permits: NUMBER,
    leases: LEASES,
    channel: PERMIT_CHANNEL,
    tombstone: TOMBSTONE,
    marker: MARKER,
  };
  const args = {
    id,
    lease: 30_000,
    call: 7,
    tombstoneTtl: 1,
    markerTtl: 1,
    latest: 0,
    publish: "PUBLISH",
  };

  /** Calls a script while the permit has a lease of `before` ms, or is not in use; returns its lease after the call. */
  async function leaseAfter<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    form: Form,
    before?: number,
    inputs: [KeyValues, ArgumentValues] = [keys, args],
  ): Promise<number | undefined> {
    await bench.put(permits(1, { [THEIRS]: 20_000 }));
    const [seconds = 0] = (await bench.redis.time()).map(Number);
    if (before) await bench.redis.zadd(LEASES, seconds * 1_000 + before, bytes);
    await bench.runner(script, form)(inputs[0] as NoInfer<K>, inputs[1] as NoInfer<A>);
    const end = await bench.redis.zscore(LEASES, bytes);
    expect(await bench.redis.zcard(LEASES)).toBe(end === null ? 1 : 2);
    return end === null ? undefined : Number(end) - seconds * 1_000;
  }

  test.each(forms(permitsAcquire))("permits/acquire, %s", async (form) => {
    expect(await leaseAfter(permitsAcquire, form)).toBeGreaterThanOrEqual(30_000);
  });
  test.each(forms(permitsRelease))("permits/release, %s", async (form) => {
    const inputs: [KeyValues, ArgumentValues] = [keys, { ...args, call: "mine" }];
    expect(await leaseAfter(permitsRelease, form, 90_000, inputs)).toBeUndefined();
  });
  test.each(forms(permitsRenew))("permits/renew, %s", async (form) => {
    const inputs: [KeyValues, ArgumentValues] = [{ leases: [LEASES] }, { lease: 30_000, ids: [id] }];
    expect(await leaseAfter(permitsRenew, form, 10_000, inputs)).toBeGreaterThanOrEqual(30_000);
  });
  test.each(forms(permitsUpdate))("permits/update, %s", async (form) => {
    expect(await leaseAfter(permitsUpdate, form, 900_000)).toBeLessThan(100_000);
  });
});

describe("very many leases that are over at once", () => {
  const letLapse = (count: number) =>
    bench.redis.eval(
      "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], i, 'permit ' .. i) end",
      1,
      LEASES,
      count,
    );
  const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: TOMBSTONE };

  test.each([9_000, 60_000])("permits/acquire: %i", async (count) => {
    await bench.put(permits(0));
    await letLapse(count);
    const acquire = bench.runner(permitsAcquire, FORM);
    const reply = await acquire(keys, { id: hex(MINE), lease: 30_000, publish: "PUBLISH" });
    expect(reply).toEqual([1, count - 1, left(30_000)]);
    await bench.expect(permits(count - 1, { [MINE]: later(30_000) }));
  });

  test("permits/state: 60 000", async () => {
    await bench.put(permits(0));
    await letLapse(60_000);
    expect(await bench.runner(permitsState, FORM)(keys, { publish: "PUBLISH" })).toEqual([60_000, 0]);
  });
});

describe("without memory all of it is done, or nothing", () => {
  const isRefused = (call: () => Promise<unknown>): Promise<boolean> =>
    bench.outOfMemory(() =>
      call().then(
        () => false,
        (error: Error) => {
          expect(error.message).toContain("OOM");
          return true;
        },
      ),
    );

  test.each(forms(permitsAcquire))("permits/acquire, %s", async (form) => {
    const others = { [THEIRS]: 30_000 };
    await bench.put(permits(5, others));
    const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: TOMBSTONE };
    const acquire = bench.runner(permitsAcquire, form);
    const refused = await isRefused(() =>
      acquire(keys, { id: hex(MINE), lease: 30_000, publish: "PUBLISH" }),
    );
    await bench.expect(refused ? permits(5, others) : permits(4, { ...others, [MINE]: later(30_000) }));
  });

  test.each(forms(permitsSet))("permits/set, %s", async (form) => {
    await bench.put(permits(5));
    const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, marker: MARKER };
    const set = bench.runner(permitsSet, form);
    const refused = await isRefused(() =>
      set(keys, { count: 7, call: 7, markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" }),
    );
    await bench.expect(refused ? permits(5) : permits(7, {}, done));
  });
});
