import { expect, test } from "vitest";
import {
  lockAcquire,
  lockExtend,
  lockForce,
  lockReenter,
  lockRelease,
  lockRenew,
  lockState,
  lockUndo,
} from "../../src/scripts/generated.js";
import {
  announced,
  CHANNEL,
  held,
  LOCK,
  left,
  ME,
  MOST,
  mine,
  OTHER,
  over,
  type States,
  TOMBSTONE,
  text,
  theirs,
  useBench,
} from "./bench.js";
import { each, type Outcome, scriptTable } from "./table.js";

const bench = await useBench();

/** A hash with several owners, which only a mistake elsewhere could make: each script changes its own field only. */
const both = (ttl: number, mine: string, theirs: string): States => ({
  [LOCK]: held({ [ME]: mine, [OTHER]: theirs }, ttl),
});
const CALL = "holdfast_over:{job}:call";
const callOver = { [CALL]: text("1", 20_000) };
/** The marker of a call by force that found nothing. */
const foundNothing = { [CALL]: text("0", 20_000) };

/** The lock is free, or as it `stays`; the tombstone says that the release is done, and all waiters get a message. */
const released = (stays: States = {}): Outcome => ({
  reply: 1,
  after: { ...stays, ...over },
  heard: announced("0"),
});

scriptTable(bench, lockAcquire, {
  keys: { lock: LOCK, tombstone: TOMBSTONE },
  args: { owner: ME, lease: 60_000 },
  rows: {
    "1: a free lock is granted": { reply: 1, after: mine(60_000) },
    "1: an owner that has it keeps its count, and a longer TTL": { given: mine(90_000, "3"), reply: 1 },
    "1: an owner that has it keeps its count, and raises the TTL": {
      given: mine(30_000, "12"),
      reply: 1,
      after: mine(60_000, "12"),
    },
    "{0, pttl}: another holds it": { given: theirs(50_000, "2"), reply: [0, left(50_000)] },
    "{0, -1}: another holds it without end": { given: theirs(-1), reply: [0, -1] },
    ...each(
      "{2, 0}: a wire id that is over does not get %s",
      { "a free lock": {}, "its own lock": mine(20_000), "another's lock": theirs(20_000) },
      (given: States) => ({ given: { ...given, ...over }, reply: [2, 0] }),
    ),
  },
});

scriptTable(bench, lockReenter, {
  keys: { lock: LOCK, tombstone: TOMBSTONE },
  args: { owner: ME, count: 2, lease: 60_000 },
  largest: {
    given: mine(30_000, String(MOST - 1)),
    args: { count: MOST, lease: MOST },
    reply: 1,
    after: mine(MOST, String(MOST)),
  },
  rows: {
    "1: a nested hold raises the TTL": {
      given: both(30_000, "1", "4"),
      reply: 1,
      after: both(60_000, "2", "4"),
    },
    "1: a shorter lease does not lower the TTL": { given: mine(90_000), reply: 1, after: mine(90_000, "2") },
    "0: a lock that is gone is not made again": { reply: 0 },
    "-1: another holds it": { given: theirs(30_000), reply: -1 },
    ...each(
      "2: a call changes nothing that %s",
      {
        "was given up": [2, "1", over],
        "was given up after an earlier run": [1, "1", over],
        "comes two too early": [3, "1", {}],
        "comes one too late": [0, "1", {}],
        "comes far too late": [1, "5", {}],
      } as Record<string, [count: number, held: string, marks: States]>,
      ([count, held, marks]) => ({ given: { ...mine(30_000, held), ...marks }, args: { count }, reply: 2 }),
    ),
  },
});

scriptTable(bench, lockRelease, {
  keys: { lock: LOCK, channel: CHANNEL, tombstone: TOMBSTONE },
  args: { owner: ME, count: 0, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH" },
  largest: {
    given: mine(30_000),
    args: { count: MOST, left: MOST },
    reply: 1,
    after: mine(MOST, String(MOST)),
  },
  rows: {
    "1: the last hold frees the lock": { given: mine(30_000), ...released(), thrifty: true },
    "1: the tombstone says that it is done": { given: over, args: { tombstoneTtl: 90_000 }, reply: 1 },
    "1: the tombstone spares the next holder": { given: { ...theirs(30_000), ...over }, reply: 1 },
    ...each(
      "1: the lock is free with %s, whatever the count was",
      { "none left": { count: 0, left: 5_000 }, "none left that lasts": { count: 2, left: 0 } },
      (args) => ({ given: both(30_000, "3", "1"), args, ...released(theirs(30_000)) }),
    ),
    ...each("1: holds that are left set count and TTL, %s", { up: 60_000, down: 15_000 }, (left) => ({
      given: mine(30_000, "3"),
      args: { count: 2, left },
      reply: 1,
      after: mine(left, "2"),
      thrifty: true,
    })),
    "1: a nested release whose call is over changes nothing": {
      given: { ...mine(30_000, "3"), ...over },
      args: { count: 2, left: 60_000 },
      reply: 1,
    },
    "0: the last hold of a lock that is gone tells those who wait": {
      reply: 0,
      heard: announced("0"),
      again: { heard: announced("0") },
    },
    "0: a nested hold of a lock that is gone tells nobody": { args: { count: 1, left: 20_000 }, reply: 0 },
    ...each("-1: another holds it at the end of %s", { "the last hold": 0, "a nested hold": 1 }, (count) => ({
      given: theirs(30_000),
      args: { count, left: 20_000 * count },
      reply: -1,
    })),
  },
});

scriptTable(bench, lockExtend, {
  keys: { lock: LOCK, tombstone: CALL },
  args: { owner: ME, lease: 60_000 },
  rows: {
    ...each("1: the TTL is set %s", { up: 60_000, down: 15_000 }, (lease) => ({
      given: both(30_000, "2", "1"),
      args: { lease },
      reply: 1,
      after: both(lease, "2", "1"),
      thrifty: true,
    })),
    "0: a lock that is gone is not made again": { reply: 0 },
    "-1: another holds it": { given: theirs(30_000), reply: -1 },
    "1: a call that is over changes nothing": { given: { ...mine(30_000), ...callOver }, reply: 1 },
  },
});

const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
const namesHeld = (ttl: number): States =>
  Object.fromEntries(names.map((name) => [name, held({ [ME]: "12" }, ttl)]));
const strangers: States = {
  taken: held({ [OTHER]: "1" }, 15_000),
  data: text("theirs", 15_000),
  list: { value: ["theirs"], ttl: -1 },
};
const neighbours = (ttl: number): States => ({
  first: held({ [ME]: "1" }, ttl),
  last: held({ [ME]: "1" }, ttl),
});

scriptTable(bench, lockRenew, {
  keys: { locks: [LOCK] },
  args: { lease: 30_000, owners: [ME] },
  tolerates: "hexists",
  largest: { given: mine(15_000), args: { lease: MOST }, reply: [1], after: mine(MOST) },
  rows: {
    "1: the TTL is raised, and kept where it is higher": {
      given: { a: held({ [ME]: "2" }, 15_000), b: held({ [OTHER]: "1" }, 60_000) },
      keys: { locks: ["a", "b"] },
      args: { owners: [ME, OTHER] },
      reply: [1, 1],
      after: { a: held({ [ME]: "2" }, 30_000), b: held({ [OTHER]: "1" }, 60_000) },
    },
    "0 and -1: what is gone or another's stays so, and its neighbours are renewed": {
      given: { ...strangers, ...neighbours(15_000) },
      keys: { locks: ["first", "gone", "taken", "data", "list", "last"] },
      args: { owners: Array.from({ length: 6 }, () => ME) },
      reply: [1, 0, -1, -1, -1, 1],
      after: { ...strangers, ...neighbours(30_000) },
    },
    "1: many are renewed at once, without memory": {
      given: namesHeld(15_000),
      keys: { locks: names },
      args: { owners: names.map(() => ME) },
      reply: names.map(() => 1),
      after: namesHeld(30_000),
      thrifty: true,
    },
  },
});

scriptTable(bench, lockState, {
  keys: { lock: LOCK },
  args: { owner: ME },
  rows: {
    ...each(
      "{1, count, pttl}: a held lock, asked for %s",
      { "its owner": [ME, 3], another: [OTHER, 0], nobody: ["", 0] } as const,
      ([owner, count]) => ({ given: mine(30_000, "3"), args: { owner }, reply: [1, count, left(30_000)] }),
    ),
    "{0, 0, -2}: a free lock": { reply: [0, 0, -2] },
    "{1, count, -1}: a lock without end": { given: mine(-1), reply: [1, 1, -1] },
  },
});

test("lock/state tells the largest numbers", async () => {
  await bench.put(mine(MOST, String(MOST)));
  const exact = bench.server.connect({ stringNumbers: true }); // ioredis would read 2^53-1 as 2^53
  const [, count, ttl] = (await bench.runner(lockState, exact)({ lock: LOCK }, { owner: ME })) as string[];
  expect([count, Number(ttl)]).toEqual([String(MOST), left(MOST)]);
});

const many = { tombstones: ["over:1", "over:2", "over:3"] };

scriptTable(bench, lockUndo, {
  keys: { lock: LOCK, channel: CHANNEL, tombstones: [TOMBSTONE] },
  args: { owners: [ME], count: 0, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH" },
  again: { reply: 0 },
  largest: {
    given: mine(30_000, String(MOST)),
    args: { count: MOST - 1, left: MOST, tombstoneTtl: MOST },
    reply: 1,
    after: { ...mine(MOST, String(MOST - 1)), [TOMBSTONE]: text("1", MOST) },
  },
  rows: {
    "1: an acquire is undone; and 0 the next time": { given: mine(30_000), ...released(), thrifty: true },
    ...each(
      "1: a nested acquire alone is undone, the TTL set %s; and 0 the next time",
      { up: 60_000, down: 15_000 },
      (left) => ({
        given: both(30_000, "3", "1"),
        args: { count: 2, left },
        reply: 1,
        after: { ...both(left, "2", "1"), ...over },
        thrifty: true,
      }),
    ),
    ...each(
      "1: the lock is given back with %s",
      { "none left": { count: 0, left: 5_000 }, "none left that lasts": { count: 1, left: 0 } },
      (args) => ({ given: both(30_000, "2", "1"), args, ...released(theirs(30_000)) }),
    ),
    ...each(
      "0: %s has nothing to undo; the tombstone stands",
      {
        "a free lock": [0, 0, {}],
        "another's lock": [0, 0, theirs(30_000)],
        "a count that is lower": [2, 60_000, mine(30_000)],
        "a count that is the same": [1, 60_000, mine(30_000)],
        "a count that is the same, and none lasts": [1, 0, mine(30_000)],
      } as Record<string, [number, number, States]>,
      ([count, left, given]) => ({
        given,
        args: { count, left },
        reply: 0,
        after: { ...given, ...over },
        thrifty: true,
      }),
    ),
    ...each(
      "0: an earlier run has undone it: %s",
      {
        "a nested one": [2, 60_000, mine(30_000, "3")],
        "a nested one, with its TTL": [2, 60_000, mine(90_000, "2")],
        "the last one": [0, 0, mine(30_000, "3")],
      } as Record<string, [number, number, States]>,
      ([count, left, given]) => ({
        given: { ...given, ...over },
        args: { count, left, tombstoneTtl: 80_000 },
        reply: 0,
      }),
    ),
    "1: of many what each had is gone, and each has its tombstone": {
      given: { [LOCK]: held({ [ME]: "1", [OTHER]: "1", "client:9": "2" }, 30_000) },
      keys: many,
      args: { owners: [ME, "client:4", OTHER] },
      reply: 1,
      after: {
        [LOCK]: held({ "client:9": "2" }, 30_000),
        ...Object.fromEntries(many.tombstones.map((key) => [key, text("1", 40_000)])),
      },
      heard: [...announced("0"), ...announced("0")],
    },
  },
});

scriptTable(bench, lockForce, {
  keys: { lock: LOCK, channel: CHANNEL, tombstone: CALL },
  args: { tombstoneTtl: 20_000, publish: "PUBLISH" },
  rows: {
    "1: the lock is free, whoever held it": {
      given: { ...theirs(30_000, "2"), ...over },
      reply: 1,
      after: { ...over, ...callOver },
      heard: announced("0"),
      thrifty: true,
    },
    "1: a copy of the call leaves the next holder alone": {
      given: { ...theirs(30_000), ...callOver },
      reply: 1,
    },
    "0: a free lock is told to nobody": {
      given: over,
      reply: 0,
      after: { ...over, ...foundNothing },
      thrifty: true,
    },
    "0: a copy of the call that found nothing leaves the next holder alone": {
      given: { ...theirs(30_000), ...foundNothing },
      reply: 0,
    },
  },
});
