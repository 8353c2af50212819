/** The write side of a read-write lock. */
import { expect, test } from "vitest";
import {
  writeAcquire,
  writeOldForce,
  writeRelease,
  writeState,
  writeUndo,
} from "../../src/scripts/generated.js";
import {
  LOCK,
  later,
  left,
  ME,
  MOST,
  OTHER,
  over,
  type Scores,
  type States,
  scored,
  TOMBSTONE,
  text,
  theirs,
  useBench,
} from "./bench.js";
import {
  announced,
  CALL,
  CHANNEL,
  done,
  ENDING_KEYS,
  foundNothing,
  MY_WRITE,
  reading,
  THIRD,
  WRITERS,
  writing,
} from "./sides.js";
import { each, type Outcome, scriptTable, WRONGTYPE } from "./table.js";

const bench = await useBench();

const read = reading({ [OTHER]: [50_000] });
const written = writing(50_000, "2", [], OTHER);
/** Waiting writers, and until when they count as waiting. */
const waits = (writers: Scores["members"], ttl = 40_000): States => ({ [WRITERS]: scored(writers, ttl) });
/** How long a silent writer counts as waiting; 0 for a call that does not wait, or whose writers do not go first. */
const PATIENCE = 20_000;
const NO_WAIT = 0;
const me = waits({ [ME]: later(PATIENCE) }, PATIENCE);

/** The lock is free, or as it `stays`; the tombstone says that the release is done, and all waiters get a message. */
const released = (stays: States = {}): Outcome => ({
  reply: 1,
  after: { ...stays, ...over },
  heard: announced("1"),
});
const forced = (stays: States = {}): Outcome => ({
  reply: 1,
  after: { ...stays, ...done },
  heard: announced("1"),
});

/** States in which ME cannot have the lock, and when it may be free. */
const refused = {
  "another writes": [written, 50_000],
  "another writes, without end": [writing(-1, "1", [], OTHER), -1],
  "another writes, whose read holds have lapsed": [writing(50_000, "2", [0], OTHER), 50_000],
  "others read": [read, 50_000],
  "others read, and one hold that lives keeps it for all lapsed ones": [
    reading({ [OTHER]: [0, 25_000, 0], [THIRD]: [0] }, 50_000),
    50_000,
  ],
  "others read, without end": [reading({ [OTHER]: [50_000] }, -1), -1],
  "a plain lock of that name is there": [theirs(50_000), 50_000],
} as Record<string, [given: States, ttl: number]>;

scriptTable(bench, writeAcquire, {
  keys: { lock: LOCK, tombstone: TOMBSTONE, writers: WRITERS },
  args: { owner: ME, field: MY_WRITE, lease: 60_000, aliveFor: PATIENCE },
  endless: /^holdfast_writers:/,
  rows: {
    ...each(
      "1: a free lock is granted to one that %s",
      { waits: PATIENCE, "does not wait": NO_WAIT },
      (aliveFor) => ({ args: { aliveFor }, reply: 1, after: writing(60_000) }),
    ),
    "1: granted before, it keeps counts, and the TTL is raised and never a sum": {
      given: writing(30_000, "12", [10_000]),
      reply: 1,
      after: writing(60_000, "12", [10_000]),
    },
    "1: whoever is granted the lock waits no more; the others do": {
      given: waits({ [OTHER]: 5_000, [ME]: 6_000, [THIRD]: -1 }),
      reply: 1,
      after: { ...writing(60_000), ...waits({ [OTHER]: 5_000, [THIRD]: -1 }) },
    },
    "1: a lock whose readers have all lapsed is free, also when its own TTL has not": {
      given: reading({ [OTHER]: [0, 0], [THIRD]: [0] }, 90_000),
      reply: 1,
      after: writing(60_000),
    },
    ...each("{0, pttl}: %s; who does not wait is not marked", refused, ([given, ttl]) => ({
      given,
      args: { aliveFor: NO_WAIT },
      reply: [0, left(ttl)],
    })),
    ...each("{0, pttl}: %s; who waits is marked", refused, ([given, ttl]) => ({
      given,
      reply: [0, left(ttl)],
      after: { ...given, ...me },
    })),
    "{0, pttl}: the marks of others stay, those of dead ones go": {
      given: { ...read, ...waits({ a: -1, b: 5_000, [ME]: 4_000 }, 5_000) },
      reply: [0, left(50_000)],
      after: { ...read, ...waits({ b: 5_000, [ME]: later(PATIENCE) }, PATIENCE) },
    },
    "who does not wait leaves the marks of others as they are": {
      given: { ...read, ...waits({ [OTHER]: -1, [THIRD]: 5_000 }, 5_000) },
      args: { aliveFor: NO_WAIT },
      reply: [0, left(50_000)],
    },
    "{0, pttl}: a late copy of the command by which its owner came to write, before it went on as a reader": {
      given: reading({ [ME]: [50_000], [OTHER]: [30_000] }),
      reply: [0, left(50_000)],
    },
    ...each(
      "{2, 0}: a wire id that is over does not get %s, nor a mark",
      {
        "a free lock": {},
        "its own lock": writing(20_000),
        "another's lock": writing(20_000, "1", [], OTHER),
        "a lock that others read": reading({ [OTHER]: [20_000] }),
      },
      (given) => ({ given: { ...given, ...over, ...waits({ [OTHER]: 5_000 }) }, reply: [2, 0] }),
    ),
    ...each(
      "other data in the key of %s stays as it is",
      {
        "the lock": { [LOCK]: { value: ["theirs"], ttl: 60_000 } },
        "the waiting writers": { [WRITERS]: text("theirs", 60_000) },
        "the waiting writers, while others read": { ...read, [WRITERS]: text("theirs", 60_000) },
      } as Record<string, States>,
      (given) => ({ given, reply: WRONGTYPE }),
    ),
  },
});

test("write/acquire: without memory a free lock is granted or refused, but either wholly", async () => {
  await bench.put({});
  const acquire = bench.runner(writeAcquire);
  const keys = { lock: LOCK, tombstone: TOMBSTONE, writers: WRITERS };
  const reply = await bench.outOfMemory(() =>
    acquire(keys, { owner: ME, field: MY_WRITE, lease: 90_000, aliveFor: PATIENCE }).catch(String),
  );
  expect(reply).toEqual(typeof reply === "string" ? expect.stringContaining("OOM") : 1);
  await bench.expect(typeof reply === "string" ? {} : writing(90_000));
});

/** States in which ME is not the writer, and the script's reply to each. */
const notHeld = {
  "0: the lock is gone": [0, {}],
  "-1: another writes": [-1, writing(30_000, "1", [], OTHER)],
  "-1: it reads, with others": [-1, reading({ [OTHER]: [30_000], [ME]: [30_000] })],
} as Record<string, [reply: number, given: States]>;

/** Of a lock that is gone, by its TTL as it seems, who waits is told. */
const told = (reply: number) => {
  const heard = reply === 0 ? announced("1") : [];
  return { reply, heard, again: { heard } };
};

scriptTable(bench, writeRelease, {
  keys: ENDING_KEYS,
  args: { owner: ME, field: MY_WRITE, count: 0, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH" },
  rows: {
    "1: the last hold, announced to all who wait": {
      given: writing(30_000),
      ...released(),
      thrifty: true,
    },
    "1: a downgrade leaves the read holds, and is announced to all who wait": {
      given: writing(90_000, "1", [10_000, 30_000, 0]),
      args: { left: 30_000 },
      ...released(reading({ [ME]: [10_000, 30_000, 0] }, 30_000)),
      thrifty: true,
    },
    ...each(
      "1: read holds that have lapsed do not keep the lock, whatever the call says: %s ms left",
      { 0: 0, 20000: 20_000 },
      (left) => ({ given: writing(90_000, "1", [0, 0]), args: { left }, ...released() }),
    ),
    ...each(
      "1: with write holds left, count and TTL are set to theirs, %s",
      { up: 60_000, down: 15_000 },
      (left) => ({
        given: writing(30_000, "3", [10_000]),
        args: { count: 2, left },
        reply: 1,
        after: writing(left, "2", [10_000]),
        thrifty: true,
      }),
    ),
    ...each(
      "1: a release with %s holds left whose call is over changes nothing",
      { write: 2, read: 0 },
      (count) => ({
        given: { ...writing(30_000, "3", [10_000]), ...over },
        args: { count, left: 60_000 },
        reply: 1,
      }),
    ),
    "1: the last hold is given back though the owner's reading has left a tombstone": {
      given: { ...writing(30_000), ...over },
      args: { tombstoneTtl: 90_000 },
      ...released(),
    },
    ...each("%s (the last hold)", notHeld, ([reply, given]) => ({ given, ...told(reply) })),
    ...each("%s (a nested hold)", notHeld, ([reply, given]) => ({
      given,
      args: { count: 1, left: 20_000 },
      reply,
    })),
  },
});

scriptTable(bench, writeState, {
  keys: { lock: LOCK },
  args: { field: MY_WRITE },
  rows: {
    ...each(
      "{1, count, pttl}: a lock that is written, asked for %s",
      { "its writer": [MY_WRITE, 12], another: [`${OTHER}:write`, 0], nobody: [":write", 0] },
      ([field, count]) => ({
        given: writing(30_000, "12", [10_000]),
        args: { field },
        reply: [1, count, left(30_000)],
      }),
    ),
    ...each(
      "{0, 0, -2}: %s",
      {
        "a free lock": {},
        "a lock that is read, even by this owner": reading({ [ME]: [30_000] }),
        "a plain lock of that name": theirs(30_000),
      },
      (given) => ({ given, reply: [0, 0, -2] }),
    ),
  },
});

test("write/state: the largest numbers", async () => {
  await bench.put(writing(MOST, String(MOST)));
  const exact = bench.server.connect({ stringNumbers: true }); // ioredis would read 2^53-1 as 2^53
  const reply = await bench.runner(writeState, exact)({ lock: LOCK }, { field: MY_WRITE });
  const [, count, ttl] = reply as string[];
  expect([count, Number(ttl)]).toEqual([String(MOST), left(MOST)]);
});

scriptTable(bench, writeUndo, {
  keys: { ...ENDING_KEYS, writers: WRITERS },
  args: { owner: ME, field: MY_WRITE, count: 0, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH" },
  again: { reply: 0 },
  rows: {
    "1: an acquire, announced to all who wait; and 0 the next time": {
      given: writing(30_000),
      ...released(),
    },
    "1: an acquire leaves the owner's read holds, and all who wait are told": {
      given: writing(90_000, "12", [10_000, 30_000]),
      args: { left: 30_000 },
      ...released(reading({ [ME]: [10_000, 30_000] })),
      thrifty: true,
    },
    "1: read holds that have lapsed do not keep the lock": {
      given: writing(90_000, "1", [0, 0]),
      ...released(),
    },
    ...each(
      "1: a nested acquire alone, the TTL set %s; and 0 the next time",
      { up: 60_000, down: 15_000 },
      (left) => ({
        given: writing(30_000, "3", [10_000]),
        args: { count: 2, left },
        reply: 1,
        after: { ...writing(left, "2", [10_000]), ...over },
        thrifty: true,
      }),
    ),
    "1: a writer that waits and gives up, the last one; the readers are told; and 0 the next time": {
      given: { ...read, ...waits({ [ME]: 5_000 }) },
      ...released(read),
    },
    "1: a writer that waits and gives up, not the last one, so nobody is told": {
      given: { ...read, ...waits({ [ME]: 5_000, [THIRD]: 6_000 }) },
      reply: 1,
      after: { ...read, ...waits({ [THIRD]: 6_000 }), ...over },
    },
    "1: a writer that waits and gives up, the last one that lives; the readers are told though a dead one is marked":
      { given: { ...read, ...waits({ [THIRD]: -1, [ME]: 5_000 }) }, ...released(read) },
    ...each(
      "0: %s has nothing to undo; the tombstone stands",
      {
        "a free lock": [0, 0, {}],
        "a free lock, for which other writers wait,": [0, 0, waits({ [THIRD]: 6_000 })],
        "another's lock": [0, 0, writing(30_000, "1", [], OTHER)],
        "a lock that the owner only reads": [0, 30_000, reading({ [ME]: [30_000] })],
        "a count that is lower": [2, 60_000, writing(30_000)],
        "a count that is the same": [1, 60_000, writing(30_000)],
      } as Record<string, [count: number, left: number, given: States]>,
      ([count, left, given]) => ({
        given,
        args: { count, left },
        reply: 0,
        after: { ...given, ...over },
        thrifty: true,
      }),
    ),
    ...each(
      "0: an earlier run has undone it, and a later one changes nothing more: %s",
      {
        "a nested one": [2, 60_000, "3"],
        "a nested one, by now with another TTL": [2, 15_000, "2"],
        "the last one": [0, 0, "3"],
      } as Record<string, [count: number, left: number, held: string]>,
      ([count, left, held]) => ({
        given: { ...writing(30_000, held), ...waits({ [ME]: 5_000 }), ...over },
        args: { count, left, tombstoneTtl: 80_000 },
        reply: 0,
      }),
    ),
    ...each(
      "other data in the key of %s stays as it is",
      {
        "the waiting writers": { ...writing(30_000), [WRITERS]: text("theirs", 60_000) },
      } as Record<string, States>,
      (given) => ({ given, reply: WRONGTYPE, after: { ...given, ...over } }),
    ),
  },
});

scriptTable(bench, writeOldForce, {
  keys: { tombstone: CALL, lock: LOCK, channel: CHANNEL },
  args: { tombstoneTtl: 20_000, publish: "PUBLISH" },
  rows: {
    "1: whoever wrote, announced to all who wait": {
      given: { ...written, ...over },
      ...forced(over),
    },
    "1: sent again, it leaves the next writer alone": {
      given: { ...writing(30_000, "1", [10_000], OTHER), ...done },
      reply: 1,
    },
    ...each(
      "1: a writer that reads as well goes on as a reader, and all who wait are told: %s",
      {
        "of a lock with a longer TTL": [90_000, [10_000, 30_000, 0]],
        "of a lock that somebody else left without end": [-1, [10_000, 30_000]],
        "all read holds are looked at, however often it wrote": [90_000, [0, 0, 30_000]],
      } as Record<string, [ttl: number, terms: number[]]>,
      ([ttl, terms]) => ({
        given: writing(ttl, "2", terms),
        ...forced(reading({ [ME]: terms }, 30_000)),
        thrifty: true,
      }),
    ),
    ...each(
      "0: %s, and nothing is announced or changed",
      {
        "it was free": {},
        "others read": reading({ [ME]: [30_000] }),
        "a plain lock of that name": theirs(30_000),
      },
      (given) => ({ given: { ...given, ...over }, reply: 0, after: { ...given, ...over, ...foundNothing } }),
    ),
  },
});
