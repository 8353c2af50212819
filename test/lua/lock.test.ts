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
  forms,
  held,
  LOCK,
  left,
  ME,
  MOST,
  mine,
  OTHER,
  otherData,
  over,
  type States,
  TOMBSTONE,
  text,
  theirs,
  useBench,
} from "./bench.js";
import { each, OUT_OF_MEMORY, type Outcome, scriptTable, WRONGTYPE } from "./table.js";

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
    ...each(
      "1: an owner that has it keeps its count (%s), and the TTL is raised",
      { 3: "3", 12: "12" },
      (count) => ({ given: mine(30_000, count), reply: 1, after: mine(60_000, count) }),
    ),
    "{0, pttl}: held by another": { given: theirs(50_000, "2"), reply: [0, left(50_000)] },
    "{0, -1}: held by another, without end": { given: theirs(-1), reply: [0, -1] },
    ...each(
      "{2, 0}: a wire id that is over does not get %s",
      { "a free lock": {}, "its own lock": mine(20_000), "another's lock": theirs(20_000) },
      (given: States) => ({ given: { ...given, ...over }, reply: [2, 0] }),
    ),
    "the largest lease survives as text": { args: { lease: MOST }, reply: 1, after: mine(MOST) },
    "the largest lease raises a TTL": {
      given: mine(30_000),
      args: { lease: MOST },
      reply: 1,
      after: mine(MOST),
    },
    "the largest TTL is told": { given: theirs(MOST), args: { lease: 1 }, reply: [0, left(MOST)] },
    "a key with other data stays as it is": {
      given: { [LOCK]: { value: ["theirs"], ttl: 60_000 } },
      reply: WRONGTYPE,
    },
    "without memory nothing is written, not even in part": { outOfMemory: true, reply: OUT_OF_MEMORY },
  },
  rights: {
    "a free lock": { commands: "exists hset pexpire", after: {} },
    "its own lock": { given: mine(30_000), commands: "pexpire hexists pttl", after: mine(30_000) },
    "another's lock": { given: theirs(30_000), commands: "pttl", after: theirs(30_000) },
  },
});

scriptTable(bench, lockReenter, {
  keys: { lock: LOCK, tombstone: TOMBSTONE },
  args: { owner: ME, count: 2, lease: 60_000 },
  rows: {
    "1: granted, and the TTL is raised": {
      given: both(30_000, "1", "4"),
      reply: 1,
      after: both(60_000, "2", "4"),
    },
    "1: a shorter lease does not lower the TTL": { given: mine(90_000), reply: 1, after: mine(90_000, "2") },
    "0: the lock is gone, and is not made again": { reply: 0 },
    "-1: another holds it": { given: theirs(30_000), reply: -1 },
    "2: a call that was given up": { given: { ...mine(30_000), ...over }, reply: 2 },
    "2: a call that was given up, after an earlier run": {
      given: { ...mine(30_000), ...over },
      args: { count: 1 },
      reply: 2,
    },
    "2: a call that comes two too early": { given: mine(30_000), args: { count: 3 }, reply: 2 },
    "2: a call that comes one too late": { given: mine(30_000), args: { count: 0 }, reply: 2 },
    "2: a call that comes far too late": { given: mine(30_000, "5"), args: { count: 1 }, reply: 2 },
    "the largest numbers survive as text": {
      given: mine(30_000, String(MOST - 1)),
      args: { count: MOST, lease: MOST },
      reply: 1,
      after: mine(MOST, String(MOST)),
    },
    "a key with other data stays as it is": { given: otherData, reply: WRONGTYPE },
    "without memory nothing is written, not even in part": {
      given: mine(30_000),
      outOfMemory: true,
      reply: OUT_OF_MEMORY,
    },
  },
  rights: { "its own lock": { given: mine(30_000), commands: "exists hget hset pttl pexpire" } },
});

scriptTable(bench, lockRelease, {
  keys: { lock: LOCK, channel: CHANNEL, tombstone: TOMBSTONE },
  args: { owner: ME, count: 0, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH" },
  rows: {
    "1: the last hold": { given: mine(30_000), ...released(), even: ["out of memory", "mute"] },
    "1: its tombstone says that it is done": { given: over, args: { tombstoneTtl: 90_000 }, reply: 1 },
    "1: its tombstone spares the next holder": { given: { ...theirs(30_000), ...over }, reply: 1 },
    ...each(
      "1: %s, whatever the count was",
      { "none left": { count: 0, left: 5_000 }, "none left that lasts": { count: 2, left: 0 } },
      (args) => ({ given: both(30_000, "3", "1"), args, ...released(theirs(30_000)) }),
    ),
    ...each(
      "1: with holds left, count and TTL are set to theirs, %s",
      { up: 60_000, down: 15_000 },
      (left) => ({
        given: mine(30_000, "3"),
        args: { count: 2, left },
        reply: 1,
        after: mine(left, "2"),
        even: ["out of memory"],
      }),
    ),
    "1: a nested release whose call is over": {
      given: { ...mine(30_000, "3"), ...over },
      args: { count: 2, left: 60_000 },
      reply: 1,
    },
    "0: the last hold of a lock that is gone, by its TTL as it seems: who waits is told": {
      reply: 0,
      heard: announced("0"),
      again: { heard: announced("0") },
      even: ["mute"],
    },
    "-1: the last hold, when another holds it": { given: theirs(30_000), reply: -1 },
    "0: a nested hold of a lock that is gone": { args: { count: 1, left: 20_000 }, reply: 0 },
    "-1: a nested hold, when another holds it": {
      given: theirs(30_000),
      args: { count: 1, left: 20_000 },
      reply: -1,
    },
    "the largest numbers survive as text": {
      given: mine(30_000),
      args: { count: MOST, left: MOST },
      reply: 1,
      after: mine(MOST, String(MOST)),
    },
    "the largest TTL of a tombstone": {
      given: mine(30_000, String(MOST)),
      args: { tombstoneTtl: MOST },
      reply: 1,
      after: { [TOMBSTONE]: text("1", MOST) },
      heard: announced("0"),
    },
    "other data stays as it is, for a last hold": { given: otherData, reply: WRONGTYPE },
    "other data stays as it is, for a nested hold": {
      given: otherData,
      args: { count: 1, left: 20_000 },
      reply: WRONGTYPE,
    },
  },
  rights: {
    "the last hold": { given: mine(30_000, "2"), commands: "hdel set" },
    "a nested hold": {
      given: mine(30_000, "2"),
      args: { count: 1, left: 20_000 },
      commands: "hexists pexpire hset",
    },
  },
});

scriptTable(bench, lockExtend, {
  keys: { lock: LOCK, tombstone: CALL },
  args: { owner: ME, lease: 60_000 },
  rows: {
    ...each("1: the TTL is set %s", { up: 60_000, down: 15_000, "to the most there is": MOST }, (lease) => ({
      given: both(30_000, "2", "1"),
      args: { lease },
      reply: 1,
      after: both(lease, "2", "1"),
      even: ["out of memory"],
    })),
    "0: the lock is gone, and is not made again": { reply: 0 },
    "-1: another holds it": { given: theirs(30_000), reply: -1 },
    "1: a call that is over changes nothing": { given: { ...mine(30_000), ...callOver }, reply: 1 },
    "a key with other data stays as it is": { given: otherData, reply: WRONGTYPE },
  },
  rights: {
    "its own lock": { given: mine(30_000), commands: "hexists pexpire", after: mine(30_000) },
    "a lock that is gone": { commands: "exists" },
  },
});

const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
const namesHeld = (ttl: number): States =>
  Object.fromEntries(names.map((name) => [name, held({ [ME]: "1" }, ttl)]));
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
  rows: {
    "1: raised, kept where it is higher": {
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
    "the largest lease survives as text": {
      given: mine(15_000),
      args: { lease: MOST },
      reply: [1],
      after: mine(MOST),
    },
    "the largest TTL is not lowered": { given: mine(MOST), args: { lease: 1 }, reply: [1] },
    "many at once, and without memory": {
      given: namesHeld(15_000),
      keys: { locks: names },
      args: { owners: names.map(() => ME) },
      outOfMemory: true,
      reply: names.map(() => 1),
      after: namesHeld(30_000),
    },
    "a count of many digits": { given: mine(15_000, "12"), reply: [1], after: mine(30_000, "12") },
  },
  rights: {
    "its own lock": { given: mine(15_000), commands: "pttl pexpire", after: mine(15_000) },
    "a lock that is gone": { commands: "exists", after: {} },
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
    "a lock without end": { given: mine(-1), reply: [1, 1, -1] },
    "a key with other data stays as it is": { given: otherData, reply: WRONGTYPE },
  },
  rights: { "its own lock": { given: mine(30_000), commands: "hrandfield exists hget pttl" } },
});

test.each(forms(lockState))("lock/state, %s: the largest numbers", async (form) => {
  await bench.put(mine(MOST, String(MOST)));
  const exact = bench.server.connect({ stringNumbers: true }); // ioredis would read 2^53-1 as 2^53
  const [, count, ttl] = (await bench.runner(
    lockState,
    form,
    exact,
  )({ lock: LOCK }, { owner: ME })) as string[];
  expect([count, Number(ttl)]).toEqual([String(MOST), left(MOST)]);
});

const many = { tombstones: ["over:1", "over:2", "over:3"] };

scriptTable(bench, lockUndo, {
  keys: { lock: LOCK, channel: CHANNEL, tombstones: [TOMBSTONE] },
  args: { owners: [ME], count: 0, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH" },
  again: { reply: 0 },
  rows: {
    "1: an acquire; and 0 the next time": {
      given: mine(30_000),
      ...released(),
      even: ["out of memory", "mute"],
    },
    ...each(
      "1: a nested acquire alone, the TTL set %s; and 0 the next time",
      { up: 60_000, down: 15_000 },
      (left) => ({
        given: both(30_000, "3", "1"),
        args: { count: 2, left },
        reply: 1,
        after: { ...both(left, "2", "1"), ...over },
        even: ["out of memory"],
      }),
    ),
    ...each(
      "1: %s, so the lock is given back",
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
        even: ["out of memory"],
      }),
    ),
    "0: an earlier run has undone a nested one": {
      given: { ...mine(30_000, "3"), ...over },
      args: { count: 2, left: 60_000, tombstoneTtl: 80_000 },
      reply: 0,
    },
    "0: an earlier run has undone it, and has set the TTL": {
      given: { ...mine(90_000, "2"), ...over },
      args: { count: 2, left: 60_000 },
      reply: 0,
    },
    "0: an earlier run has undone the last one": {
      given: { ...mine(30_000, "3"), ...over },
      args: { tombstoneTtl: 80_000 },
      reply: 0,
    },
    "the largest numbers survive as text": {
      given: mine(30_000, String(MOST)),
      args: { count: MOST - 1, left: MOST, tombstoneTtl: MOST },
      reply: 1,
      after: { ...mine(MOST, String(MOST - 1)), [TOMBSTONE]: text("1", MOST) },
    },
    "many at once: what each had is gone, and each has its tombstone": {
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
    "a key with other data stays as it is": {
      given: otherData,
      reply: WRONGTYPE,
      after: { ...otherData, ...over },
    },
  },
  rights: {
    "an acquire": { given: mine(30_000, "2"), commands: "exists del set hget hdel" },
    "a nested acquire": {
      given: mine(30_000, "2"),
      args: { count: 1, left: 20_000 },
      commands: "pexpire hset",
    },
  },
});

scriptTable(bench, lockForce, {
  keys: { lock: LOCK, channel: CHANNEL, tombstone: CALL },
  args: { tombstoneTtl: 20_000, publish: "PUBLISH" },
  rows: {
    "1: whoever held it": {
      given: { ...theirs(30_000, "2"), ...over },
      reply: 1,
      after: { ...over, ...callOver },
      heard: announced("0"),
      even: ["out of memory", "mute"],
    },
    "1: sent again, it leaves the next holder alone": { given: { ...theirs(30_000), ...callOver }, reply: 1 },
    "1: sent again, when the lock is free": { given: callOver, reply: 1 },
    "0: it was free, and nothing is announced": {
      given: over,
      reply: 0,
      after: { ...over, ...foundNothing },
      even: ["out of memory"],
    },
    "0: sent again, it leaves the next holder alone": {
      given: { ...theirs(30_000), ...foundNothing },
      reply: 0,
    },
    "a key with other data stays as it is": { given: { [LOCK]: text("theirs", -1) }, reply: WRONGTYPE },
  },
  rights: {
    "a held lock": { given: mine(30_000), commands: "hrandfield exists del set", after: mine(30_000) },
    "sent again": { given: { ...theirs(30_000), ...foundNothing }, commands: "get" },
  },
});
