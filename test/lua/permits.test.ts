import { describe, expect, test } from "vitest";
import {
  permitsAcquire,
  permitsRelease,
  permitsRenew,
  permitsSet,
  permitsUpdate,
} from "../../src/scripts/generated.js";
import { later, left, type Scores, type States, scored, text, useBench } from "./bench.js";
import {
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
  PERMIT_CHANNEL,
  THEIRS,
  told,
  tombstoneOf,
} from "./counts.js";
import { each, scriptTable } from "./table.js";

const bench = await useBench();

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

scriptTable(bench, permitsAcquire, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: TOMBSTONE },
  args: { id: hex(MINE), lease: 30_000, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "1: a free permit is taken": {
      given: permits(5),
      reply: [1, 4, left(30_000)],
      after: permits(4, { [MINE]: later(30_000) }),
    },
    "1: a copy of the call raises the lease": {
      given: permits(4, { [MINE]: 20_000 }),
      reply: [1, 4, left(30_000)],
      after: permits(4, { [MINE]: later(30_000) }),
    },
    "1: a copy of the call does not lower the lease": {
      given: permits(4, { [MINE]: 60_000 }),
      reply: [1, 4, left(60_000)],
    },
    "0: where no permit is free, the reply says when the next lease ends": {
      given: permits(0, { [THEIRS]: 25_000, other: 50_000 }),
      reply: [0, 0, left(25_000)],
    },
    ...each(
      "0: a call that can wait for no lease is told so: %s",
      {
        "0 are free": permits(0, { [THEIRS]: NEVER }),
        "-2 are free, and none is out": permits(-2),
        "there is no semaphore": {},
      },
      (given: States) => ({ given, mayNot: "decrby", reply: [0, 0, -1] }),
    ),
    "leases that are over free their permits, which is announced": {
      given: permits(0, { ...lapsed, [THEIRS]: 25_000 }),
      reply: [1, 1, left(25_000)],
      after: permits(1, { [THEIRS]: 25_000, [MINE]: later(30_000) }),
      heard: told(2),
    },
    "1: a permit whose own lease is over is taken anew": {
      given: permits(0, { [MINE]: -1 }),
      reply: [1, 0, left(30_000)],
      after: permits(0, { [MINE]: later(30_000) }),
      heard: told(1),
    },
    "2: an id that is over gets nothing": {
      given: permits(5, { [LONG_GONE]: -1 }, { [TOMBSTONE]: text("over", 20_000) }),
      reply: [2, 0, 0],
    },
    "leases get the TTL of the permits, which is kept": {
      given: permits(5, {}, {}, 40_000),
      reply: [1, 4, left(30_000)],
      after: permits(4, { [MINE]: later(30_000) }, {}, 40_000),
    },
    "a number of 18 digits is counted exactly": {
      given: permits("123456789012345678"),
      reply: [1, expect.any(Number), left(30_000)],
      after: permits("123456789012345677", { [MINE]: later(30_000) }),
    },
  },
});

scriptTable(bench, permitsRelease, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: TOMBSTONE },
  args: { id: hex(MINE), call: "my call", tombstoneTtl: MARKER_TTL, publish: "PUBLISH" },
  endless: ENDLESS,
  thrifty: true,
  rows: {
    "1: a permit is given back and announced": {
      given: permits(3, { [MINE]: 30_000, [THEIRS]: 20_000 }),
      reply: 1,
      after: permits(4, { [THEIRS]: 20_000 }, ended("my call")),
      heard: told(4),
    },
    "0: another call finds that it was given back": { given: permits(4, {}, ended("first")), reply: 0 },
    "0: an id that nobody has is over from now on": {
      given: permits(3, { [THEIRS]: 20_000 }),
      reply: 0,
      after: permits(3, { [THEIRS]: 20_000 }, ended("over")),
    },
    "0: a permit whose lease is over is free all the same, and announced": {
      given: permits(3, { [MINE]: 0, [LONG_GONE]: -50_000 }),
      reply: 0,
      after: permits(5, {}, ended("over")),
      heard: told(5),
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
  tolerates: "zscore zrem",
  thrifty: true,
  rows: {
    "the TTL of the key stays": {
      given: leased({ [MINE]: 15_000 }, 20_000),
      reply: [1],
      after: leased({ [MINE]: later(30_000) }, 20_000),
    },
    "1: leases are raised, and kept where they are higher": {
      given: { a: scored({ [MINE]: 15_000, [THEIRS]: 90_000 }), b: scored({ [MINE]: 1_000 }) },
      keys: { leases: ["a", "a", "b"] },
      args: { ids: [MINE, THEIRS, MINE].map(hex) },
      reply: [1, 1, 1],
      after: { a: scored({ [MINE]: later(30_000), [THEIRS]: 90_000 }), b: scored({ [MINE]: later(30_000) }) },
    },
    "0: a permit that is gone, over or not ours stays so, and its neighbours are renewed": {
      given: { ...strangers, mine: scored({ [MINE]: 15_000 }) },
      keys: { leases: ["list", "gone", "other", "text", "mine", "ended", "ended", "mine"] },
      args: { ids: [MINE, MINE, MINE, MINE, MINE, MINE, LONG_GONE, MINE].map(hex) },
      reply: [0, 0, 0, 0, 1, 0, 0, 1],
      after: { ...strangers, mine: scored({ [MINE]: later(30_000) }) },
    },
    "many permits are renewed at once, in their order, and without memory": {
      given: leased(everySecond(15_000)),
      keys: { leases: many.map(() => LEASES) },
      args: { ids: many.map(hex) },
      reply: many.map((_, i) => (i % 2 === 0 ? 1 : 0)),
      after: leased(everySecond(later(30_000))),
    },
  },
});

scriptTable(bench, permitsSet, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { count: 9, call: 7, markerTtl: MARKER_TTL, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "more permits are announced": {
      given: permits(3, twoOut),
      reply: 1,
      after: permits(7, twoOut, done),
      heard: told(9),
    },
    "a copy of the call changes nothing": { given: permits(12, twoOut, done), reply: 1 },
    "a call changes nothing after a later one": {
      given: permits(12, twoOut, { [MARKER]: marked(10) }),
      reply: 1,
    },
    "a call sets anew what an earlier one has set": {
      given: permits(12, twoOut, { [MARKER]: marked(6) }),
      reply: 1,
      after: permits(7, twoOut, done),
      heard: told(9),
    },
    "leases that are over do not count": {
      given: permits(1, { ...lapsed, [MINE]: 30_000 }),
      args: { count: 6 },
      reply: 1,
      after: permits(5, { [MINE]: 30_000 }, done),
      heard: [...told(3), ...told(6)],
    },
  },
});

scriptTable(bench, permitsUpdate, {
  keys: { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { id: hex(MINE), lease: 20_000, call: 7, markerTtl: MARKER_TTL, publish: "PUBLISH" },
  endless: ENDLESS,
  thrifty: true,
  rows: {
    "1: a lease becomes longer": {
      given: permits(3, { [MINE]: 10_000, [THEIRS]: 70_000 }),
      reply: 1,
      after: permits(3, { [MINE]: later(20_000), [THEIRS]: 70_000 }, done),
    },
    "1: a copy of the call changes nothing": {
      given: permits(3, { [MINE]: 60_000 }, done),
      reply: 1,
    },
    "1: a call changes nothing after a later one": {
      given: permits(3, { [MINE]: 60_000 }, { [MARKER]: marked(10) }),
      reply: 1,
    },
    "1: a call sets anew what an earlier one has set": {
      given: permits(3, { [MINE]: 10_000 }, { [MARKER]: marked(6) }),
      reply: 1,
      after: permits(3, { [MINE]: later(20_000) }, done),
    },
    "0: a permit that is missing is not made": {
      given: permits(3, { [THEIRS]: 70_000 }),
      reply: 0,
    },
    "0: a permit whose lease is over is free, and announced": {
      given: permits(3, { [MINE]: 0, [LONG_GONE]: -9_000 }),
      reply: 0,
      after: permits(5),
      heard: told(5),
    },
  },
});

describe("every byte of an id stands for itself", () => {
  const id = "000a0d7f80c3bfff25001f2e7d5b5c61";
  const bytes = Buffer.from(id, "hex");
  const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL };
  const ended = { ...keys, tombstone: TOMBSTONE };
  const [lease, publish] = [30_000, "PUBLISH"];
  const updating = { id, lease, call: 7, markerTtl: 1, publish };
  const renewing = { keys: { leases: [LEASES] }, args: { lease, ids: [id] } };

  /** Whether the permit is in use before the call, and the lease that it has afterwards, at least. */
  test.each([
    [permitsAcquire, { keys: ended, args: { id, lease, publish } }, undefined, 30_000],
    [
      permitsRelease,
      { keys: ended, args: { id, call: "mine", tombstoneTtl: 1, publish } },
      90_000,
      undefined,
    ],
    [permitsRenew, renewing, 10_000, 30_000],
    [permitsUpdate, { keys: { ...keys, marker: MARKER }, args: updating }, 10_000, 30_000],
  ] as const)("in $name", async (script, { keys, args }, before, after) => {
    await bench.put(permits(1, { [THEIRS]: 20_000 }));
    const [seconds = 0] = (await bench.redis.time()).map(Number);
    if (before) await bench.redis.zadd(LEASES, seconds * 1_000 + before, bytes);
    await bench.runner(script)(keys, args);
    const end = await bench.redis.zscore(LEASES, bytes);
    expect(await bench.redis.zcard(LEASES)).toBe(after ? 2 : 1);
    if (after) expect(Number(end) - seconds * 1_000).toBeGreaterThanOrEqual(after);
  });
});

test("60 000 leases that are over at once are taken back", async () => {
  const FILL = "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], i, 'permit ' .. i) end";
  await bench.put(permits(0));
  await bench.redis.eval(FILL, 1, LEASES, 60_000);
  const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: TOMBSTONE };
  const args = { id: hex(MINE), lease: 20_000, publish: "PUBLISH" };
  expect(await bench.runner(permitsAcquire)(keys, args)).toEqual([1, 59_999, expect.any(Number)]);
});
