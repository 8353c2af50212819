/** The read side of a read-write lock. */
import { expect, test } from "vitest";
import {
  readAcquire,
  readExtend,
  readOldForce,
  readReenter,
  readRelease,
  readRenew,
  readState,
  readUndo,
} from "../../src/scripts/generated.js";
import {
  held,
  LOCK,
  left,
  ME,
  MOST,
  OTHER,
  over,
  type States,
  scored,
  TOMBSTONE,
  text,
  theirs,
  useBench,
} from "./bench.js";
import {
  announced,
  BASES,
  CALL,
  CHANNEL,
  done,
  ENDING_KEYS,
  foundNothing,
  holdKey,
  holds,
  MY_WRITE,
  reading,
  THIRD,
  WRITERS,
  writing,
} from "./sides.js";
import { each, type Outcome, scriptTable } from "./table.js";

const bench = await useBench();

const mine = reading({ [ME]: [30_000] });
const two = reading({ [ME]: [30_000, 30_000] });
const written = writing(30_000, "1", [10_000], OTHER);
/** A lock of this name with one reader: ME, or the given owner. */
const named = (name: string, base: string, ttl: number, terms: readonly number[], owner = ME): States => ({
  [name]: held({ mode: "read", [owner]: String(terms.length) }, ttl),
  ...holds(owner, terms, base),
});
/** A dead waiting writer, and one that counts as alive for `ms`. */
const waits = (ms: number): States => ({ [WRITERS]: scored({ [OTHER]: -1, [THIRD]: ms }, 40_000) });
const theirsOf = (...owners: string[]) =>
  owners.flatMap((owner) => [`redisson_unlock_latch:{job}:${owner}`, holdKey(owner, 1)]);

/** The lock is free, or as it `stays`; the tombstone says that the release is done, and all waiters get a message. */
const released = (stays: States = {}): Outcome => ({
  reply: 1,
  after: { ...stays, ...over },
  heard: announced("0"),
});
const forced = (stays: States = {}): Outcome => ({
  reply: 1,
  after: { ...stays, ...done },
  heard: announced("0"),
});

scriptTable(bench, readAcquire, {
  keys: { lock: LOCK, writers: WRITERS, theirs: [TOMBSTONE, holdKey(ME, 1)] },
  args: { owners: [ME], leases: [60_000], yield: 1 },
  rows: {
    ...each(
      "{1, 0}: a free lock is granted to one that %s",
      { "does not yield": 0, yields: 1 },
      (yields) => ({ args: { yield: yields }, reply: [1, 0], after: reading({ [ME]: [60_000] }) }),
    ),
    ...each(
      "{1, 0}: granted before, it keeps the count, and only raises the TTLs of hold and lock, to %s ms",
      { 30000: [15_000, 30_000], 60000: [60_000, 60_000], 120000: [120_000, 120_000] },
      ([lease, term]) => ({
        given: reading({ [ME]: [30_000, 90_000] }),
        args: { leases: [lease] },
        reply: [1, 0],
        after: reading({ [ME]: [term, 90_000] }),
      }),
    ),
    ...each(
      "{1, 0}: beside other readers, with a lease that is %s",
      { longer: 60_000, "shorter: the TTL of the lock is theirs then": 15_000 },
      (lease) => ({
        given: reading({ [OTHER]: [30_000, 10_000] }),
        args: { leases: [lease] },
        reply: [1, 0],
        after: reading({ [OTHER]: [30_000, 10_000], [ME]: [lease] }),
      }),
    ),
    "{1, 0}: sent again when its owner has come to write as well, it changes nothing of that": {
      given: writing(90_000, "2", [30_000]),
      reply: [1, 0],
      after: writing(90_000, "2", [60_000]),
    },
    "{0, pttl}: another writes": { given: writing(50_000, "2", [30_000], OTHER), reply: [0, left(50_000)] },
    ...each(
      "{0, ms}: for %s a waiting writer goes first, until it is taken for dead",
      { "a free lock": {}, "a lock that others read": reading({ [OTHER]: [90_000] }) },
      (given) => ({ given: { ...given, ...waits(25_000) }, reply: [0, left(25_000)] }),
    ),
    ...each(
      "{1, 0}: one that %s is let in at once",
      { "does not yield": [0, waits(25_000)], "finds the waiting writers dead": [1, waits(-1)] },
      ([yields, given]) => ({
        given,
        args: { yield: yields },
        reply: [1, 0],
        after: { ...reading({ [ME]: [60_000] }), ...given },
      }),
    ),
    "{1, 0}: an owner that reads already passes waiting writers": {
      given: { ...mine, ...waits(25_000) },
      reply: [1, 0],
      after: { ...reading({ [ME]: [60_000] }), ...waits(25_000) },
    },
    ...each(
      "{2, 0}: a wire id that is over does not get %s",
      {
        "a free lock": {},
        "its own lock": reading({ [ME]: [20_000] }),
        "a lock that others read": reading({ [OTHER]: [20_000] }),
        "a lock that another writes": written,
      },
      (given) => ({ given: { ...given, ...over }, reply: [2, 0] }),
    ),
    "many at once are each answered as if they had come one after the other": {
      given: over,
      keys: { theirs: theirsOf(OTHER, ME, THIRD) },
      args: { owners: [OTHER, ME, THIRD], leases: [20_000, 90_000, 60_000] },
      reply: [1, 0, 2, 0, 1, 0],
      after: { ...over, ...reading({ [OTHER]: [20_000], [THIRD]: [60_000] }) },
    },
  },
});

const keepsOthers = {
  "-1: others read": [-1, reading({ [OTHER]: [30_000] })],
  "-1: others read, without end": [-1, reading({ [OTHER]: [30_000] }, -1)],
  "-1: a plain lock of that name is there": [-1, theirs(30_000)],
  "-1: another writes": [-1, written],
  "0: the lock is gone, and is not made again": [0, {}],
} as Record<string, [reply: number, given: States]>;
/** Of a lock that is gone, by its TTL as it seems, who waits is told. */
const told = (reply: number) => {
  const heard = reply === 0 ? announced("0") : [];
  return { reply, heard, again: { heard } };
};
const lapsedBesideOthers = reading({ [ME]: [0, 0], [OTHER]: [30_000] });
const allLapsed = reading({ [OTHER]: [0], [ME]: [0] }, 30_000);
const nine = Array<number>(9).fill(30_000);

scriptTable(bench, readReenter, {
  keys: { lock: LOCK, tombstone: TOMBSTONE },
  args: { owner: ME, field: MY_WRITE, count: 2, lease: 60_000 },
  rows: {
    ...each(
      "1: granted, with a lease that is %s",
      { longer: 60_000, "shorter: the TTL of the lock is not lowered": 15_000 },
      (lease) => ({
        given: reading({ [ME]: [30_000], [OTHER]: [10_000, 10_000] }),
        args: { lease },
        reply: 1,
        after: reading({ [ME]: [30_000, lease], [OTHER]: [10_000, 10_000] }),
      }),
    ),
    "1: with the hold there, it is not lowered": { given: reading({ [ME]: [30_000, 90_000] }), reply: 1 },
    "1: the tenth hold has the number 10": {
      given: reading({ [ME]: nine }),
      args: { count: 10 },
      reply: 1,
      after: reading({ [ME]: [...nine, 60_000] }),
    },
    ...each(
      "1: the writer takes the read side, with a lease that is %s",
      { longer: [60_000, 60_000], "shorter: the write lease is not cut": [5_000, 30_000] },
      ([lease, ttl]) => ({
        given: writing(30_000, "2"),
        args: { count: 1, lease },
        reply: 1,
        after: writing(ttl, "2", [lease]),
      }),
    ),
    ...each(
      "1: the writer whose read holds have lapsed reads afresh (%s)",
      { one: [0], three: [0, 0, 0] } as Record<string, number[]>,
      (lapsed) => ({
        given: writing(30_000, "1", lapsed),
        args: { count: 1 },
        reply: 1,
        after: writing(60_000, "1", [60_000]),
      }),
    ),
    ...each(
      "3: the writer that counts on read holds that have lapsed; no count is left behind (%s)",
      { 2: 2, 3: 3 },
      (count) => ({ given: writing(30_000, "1", [0, 0]), args: { count }, reply: 3, after: writing(30_000) }),
    ),
    ...each("%s (the first)", keepsOthers, ([reply, given]) => ({ given, args: { count: 1 }, reply })),
    "0: all who read have lapsed; what is left of them goes": { given: allLapsed, reply: 0, after: {} },
    ...each(
      "2: a call that %s changes nothing",
      {
        "was given up": [2, { ...mine, ...over }],
        "was given up, after an earlier run": [1, { ...mine, ...over }],
        "was given up, and the lock is gone": [2, over],
        "comes two too early": [3, mine],
        "comes one too late": [0, mine],
        "comes far too late": [1, reading({ [ME]: [30_000, 30_000, 30_000] })],
        "comes one too early for a writer": [0, writing(30_000, "1", [30_000])],
      },
      ([count, given]) => ({ given, args: { count }, reply: 2 }),
    ),
    ...each(
      "the hold key of %s",
      {
        ...BASES,
        "a name with a colon": ["a:b", "{a:b}"],
        "a name with braces inside": ["a{b}:c", "a{b}:c"],
        "an opening brace": ["{x", "{x"],
        "a closing brace": ["a}b", "{a}b}"],
        "signs of patterns": ["a%w.c", "{a%w.c}"],
      },
      ([lock, base]) => ({
        given: named(lock, base, 30_000, [30_000], "ключ %s:1"),
        keys: { lock },
        args: { owner: "ключ %s:1", field: "ключ %s:1:write" },
        reply: 1,
        after: named(lock, base, 60_000, [30_000, 60_000], "ключ %s:1"),
      }),
    ),
  },
});

scriptTable(bench, readRelease, {
  keys: ENDING_KEYS,
  args: { owner: ME, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH", terms: [] },
  rows: {
    "1: the last hold of the last reader": { given: mine, ...released(), thrifty: true },
    "1: the last hold of one of several readers; the TTL is the longest of the others": {
      given: reading({ [ME]: [60_000, 50_000], [OTHER]: [10_000], [THIRD]: [20_000, 30_000, 0] }),
      reply: 1,
      after: { ...reading({ [OTHER]: [10_000], [THIRD]: [20_000, 30_000, 0] }), ...over },
    },
    ...each(
      "1: when the other readers have lapsed, the last that lives takes them away and tells, %s",
      { "as long as the lock lasts": 30_000, "though the lock would have lasted longer": 90_000 },
      (ttl) => ({ given: reading({ [ME]: [30_000], [OTHER]: [0, 0], [THIRD]: [0] }, ttl), ...released() }),
    ),
    ...each(
      "1: readers with more holds than are looked for keep the lock, %s",
      { "for its time": [60_000, 60_000], "which is without end": [-1, 2 ** 52] },
      ([ttl, after]) => ({
        given: { [LOCK]: held({ mode: "read", [ME]: "1", [OTHER]: "99999" }, ttl), ...holds(ME, [60_000]) },
        reply: 1,
        after: { [LOCK]: held({ mode: "read", [OTHER]: "99999" }, after), ...over },
      }),
    ),
    ...each(
      "1: with holds left, each has its own term, and the lock the longest, %s",
      { up: [60_000, 20_000], down: [15_000, 20_000] },
      (terms) => ({
        given: reading({ [ME]: [30_000, 30_000, 30_000] }),
        args: { left: Math.max(...terms), terms },
        reply: 1,
        after: reading({ [ME]: terms }),
        thrifty: true,
      }),
    ),
    "1: a hold left whose term is over keeps its number, without a key": {
      given: reading({ [ME]: [30_000, 30_000, 30_000] }),
      args: { left: 20_000, terms: [0, 20_000] },
      reply: 1,
      after: reading({ [ME]: [0, 20_000] }),
    },
    "1: of the writer, its last read hold; the write lease is not cut to the reads'": {
      given: writing(60_000, "2", [5_000, 90_000]),
      args: { left: 60_000 },
      reply: 1,
      after: { ...writing(60_000, "2"), ...over },
    },
    ...each(
      "1: of the writer, one of several; the TTL is that of the longest hold on either side: %s",
      {
        "a write hold": [writing(90_000, "2", [90_000, 5_000]), 5_000],
        "the read hold left": [writing(30_000, "2", [5_000, 5_000]), 60_000],
      },
      ([given, term]) => ({
        given,
        args: { left: 60_000, terms: [term] },
        reply: 1,
        after: writing(60_000, "2", [term]),
      }),
    ),
    "1: a nested release whose call is over changes nothing": {
      given: { ...two, ...over },
      args: { left: 60_000, terms: [60_000] },
      reply: 1,
    },
    "1: the last hold is given back though the owner's writing has left a tombstone": {
      given: { ...reading({ [ME]: [10_000] }), ...over },
      args: { tombstoneTtl: 90_000 },
      ...released(),
    },
    ...each("%s (the last hold)", keepsOthers, ([reply, given]) => ({ given, ...told(reply) })),
    "0: only lapsed readers are there; what is left of them goes": {
      given: reading({ [OTHER]: [0], [THIRD]: [0, 0] }, 30_000),
      ...told(0),
      after: {},
    },
  },
});

test("read/release: hundreds of holds, without limit of what Lua can unpack", async () => {
  const release = (left: number, terms: number[]) =>
    bench.runner(readRelease)(ENDING_KEYS, {
      owner: ME,
      left,
      tombstoneTtl: 40_000,
      publish: "PUBLISH",
      terms,
    });
  await bench.put(mine);
  expect(await release(30_000, Array<number>(9_000).fill(30_000))).toBe(1);
  expect(await bench.redis.hget(LOCK, ME)).toBe("9000");
  expect(await bench.redis.dbsize()).toBe(9_001);
  expect(await release(0, [])).toBe(1);
  await bench.expect(over);
});

scriptTable(bench, readExtend, {
  keys: { lock: LOCK, tombstone: CALL },
  args: { owner: ME, left: 60_000, terms: [60_000] },
  rows: {
    ...each(
      "1: the terms of all holds are set, and with them the TTL, %s",
      { up: [60_000, 10_000], down: [15_000, 10_000], "to the most there is": [MOST, 10_000] },
      (terms) => ({
        given: two,
        args: { left: terms[0], terms },
        reply: 1,
        after: reading({ [ME]: terms }),
        thrifty: true,
      }),
    ),
    "1: a lock that outlives its only reader, by a pause of the server, gets that one's shorter term [B5]": {
      given: reading({ [ME]: [30_000] }, 30_500),
      args: { left: 10_000, terms: [10_000] },
      reply: 1,
      after: reading({ [ME]: [10_000] }),
    },
    "1: a shorter term does not cut the lease of another reader": {
      given: reading({ [ME]: [60_000], [OTHER]: [40_000] }),
      args: { left: 10_000, terms: [10_000] },
      reply: 1,
      after: reading({ [ME]: [10_000], [OTHER]: [40_000] }),
    },
    "1: while the owner writes, the TTL is that of its longest hold on either side": {
      given: writing(90_000, "1", [30_000]),
      args: { terms: [10_000] },
      reply: 1,
      after: writing(60_000, "1", [10_000]),
    },
    "1: terms that are over, or missing, end their holds": {
      given: reading({ [ME]: [30_000, 30_000, 30_000] }),
      args: { terms: [0, 60_000] },
      reply: 1,
      after: reading({ [ME]: [0, 60_000] }),
    },
    ...each(
      "1: no terms at all end %s",
      {
        "those of the only reader": [mine, {}, 0],
        "a lock that would last longer than its only hold": [reading({ [ME]: [10_000] }, 30_000), {}, 0],
        "those of one of several": [
          reading({ [ME]: [30_000], [OTHER]: [40_000] }),
          reading({ [OTHER]: [40_000] }),
          -1,
        ],
        "those of a writer": [writing(30_000, "1", [30_000]), writing(30_000), 0],
      },
      ([given, after, next]) => ({
        given,
        args: { left: 0, terms: [] },
        reply: 1,
        after,
        again: { reply: next },
      }),
    ),
    "1: a call that is over changes nothing": { given: { ...mine, ...done }, reply: 1 },
    ...each(
      "%s",
      {
        ...keepsOthers,
        "-1: its own holds have lapsed, and are not made again": [-1, lapsedBesideOthers],
        "0: the owner writes, and reads no more": [0, writing(30_000)],
        "0: the owner writes, and its read holds have lapsed": [0, writing(30_000, "1", [0])],
      } as typeof keepsOthers,
      ([reply, given]) => ({ given, args: { terms: [60_000, 60_000] }, reply }),
    ),
    "0: all who read have lapsed; what is left of them goes": { given: allLapsed, reply: 0, after: {} },
  },
});

const lapsed: States = { lapsed: held({ mode: "read", [OTHER]: "1" }, 15_000) };
const strangers: States = {
  read: held({ mode: "read", [OTHER]: "1" }, 15_000),
  ...holds(OTHER, [15_000], "{read}"),
  written: held({ mode: "write", [`${OTHER}:write`]: "1" }, 15_000),
  mine: held({ mode: "write", [MY_WRITE]: "1" }, 15_000),
  plain: held({ [OTHER]: "1" }, 15_000),
  data: text("theirs", 15_000),
  list: { value: ["theirs"], ttl: -1 },
};
const neighbours = (ttl: number): States => ({
  ...named("first", "{first}", ttl, [ttl]),
  ...named("{l}ast", "{l}ast", ttl, [ttl]),
});
const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
const allNames = (ttl: number): States =>
  Object.assign({}, ...names.map((name) => named(name, `{${name}}`, ttl, [ttl, ttl])));

scriptTable(bench, readRenew, {
  keys: { locks: [LOCK] },
  args: { lease: 30_000, owners: [ME] },
  endless: /^list$/,
  tolerates: "hget",
  largest: {
    given: reading({ [ME]: [15_000] }),
    args: { lease: MOST },
    reply: [1],
    after: reading({ [ME]: [MOST] }),
  },
  rows: {
    ...each(
      "1: holds and lock are raised, kept where they are higher: %s",
      { three: [15_000, 60_000, 5_000], one: [15_000] } as Record<string, number[]>,
      (terms) => ({
        given: reading({ [ME]: terms }),
        reply: [1],
        after: reading({ [ME]: terms.map((term) => Math.max(term, 30_000)) }),
      }),
    ),
    "1: nobody else's holds are kept alive, and their lease on the lock is not cut": {
      given: reading({ [ME]: [15_000], [OTHER]: [10_000, 90_000], [THIRD]: [0] }),
      reply: [1],
      after: reading({ [ME]: [30_000], [OTHER]: [10_000, 90_000], [THIRD]: [0] }),
    },
    "-1: an owner whose holds have all lapsed is told so, and leaves no count behind": {
      given: reading({ [ME]: [0, 0], [OTHER]: [15_000] }),
      reply: [-1],
      after: reading({ [OTHER]: [15_000] }),
    },
    "0 and -1: what is gone or another's stays so, what is left of the dead goes, and its neighbours are renewed":
      {
        given: { ...strangers, ...lapsed, ...neighbours(15_000) },
        keys: {
          locks: ["first", "gone", "read", "lapsed", "written", "mine", "plain", "data", "list", "{l}ast"],
        },
        args: { owners: Array.from({ length: 10 }, () => ME) },
        reply: [1, 0, -1, 0, -1, 0, -1, -1, -1, 1],
        after: { ...strangers, ...neighbours(30_000) },
      },
    "many at once, and without memory": {
      given: allNames(15_000),
      keys: { locks: names },
      args: { owners: names.map(() => ME) },
      thrifty: true,
      reply: names.map(() => 1),
      after: allNames(30_000),
    },
    "-1: who may not hget cannot tell it from other data, and renews nothing": {
      given: reading({ [ME]: [0], [OTHER]: [15_000] }),
      mayNot: "hget",
      reply: [-1],
    },
  },
});

scriptTable(bench, readState, {
  keys: { locks: [LOCK] },
  args: { owner: ME },
  rows: {
    ...each(
      "{1, count, pttl}: a lock that is read, asked for %s",
      { "a reader": [ME, 3], another: [THIRD, 0], nobody: ["", 0] },
      ([owner, count]) => ({
        given: reading({ [ME]: [30_000, 10_000, 0], [OTHER]: [50_000] }),
        args: { owner },
        reply: [1, count, left(50_000)],
      }),
    ),
    ...each(
      "{0, 0, -2}: %s",
      {
        "a free lock": {},
        "a lock that is only written": writing(30_000),
        "a lock whose readers, none of them this one, have all lapsed": reading({ [OTHER]: [0, 0] }, 30_000),
        "holds that have lapsed, when nobody reads": reading({ [ME]: [0, 0] }, 30_000),
        "a plain lock of that name": theirs(30_000),
      } as Record<string, States>,
      (given) => ({ given, reply: [0, 0, -2] }),
    ),
    "{1, 0, pttl}: holds that have lapsed do not count, while others read": {
      given: reading({ [ME]: [0, 0], [OTHER]: [30_000] }),
      reply: [1, 0, left(30_000)],
    },
  },
});

scriptTable(bench, readUndo, {
  keys: ENDING_KEYS,
  args: { owner: ME, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH", terms: [] },
  again: { reply: 0 },
  rows: {
    ...each(
      "1: an acquire of the only reader; and 0 the next time: %s",
      {
        alone: mine,
        "beside readers that have all lapsed": reading({ [ME]: [30_000], [OTHER]: [0, 0] }),
        "of a lock that would last longer than its hold": reading({ [ME]: [10_000] }, 30_000),
      },
      (given) => ({ given, ...released(), thrifty: true }),
    ),
    "1: an acquire beside other readers, who keep the lock as long as they last": {
      given: reading({ [ME]: [60_000], [OTHER]: [10_000], [THIRD]: [20_000, 30_000] }),
      reply: 1,
      after: { ...reading({ [OTHER]: [10_000], [THIRD]: [20_000, 30_000] }), ...over },
    },
    ...each(
      "1: a nested acquire alone, the TTL set %s; and 0 the next time",
      { up: [60_000, 20_000], down: [15_000, 20_000] },
      (terms) => ({
        given: reading({ [ME]: [30_000, 30_000, 30_000] }),
        args: { left: Math.max(...terms), terms },
        reply: 1,
        after: { ...reading({ [ME]: terms }), ...over },
        thrifty: true,
      }),
    ),
    ...each(
      "1: while the owner writes, %s",
      {
        "its first read hold, so that only its write holds stay": [[], 60_000, 60_000],
        "a further read hold": [[5_000], 60_000, 60_000],
        "a read hold when nothing else lasts: the write side keeps what it has": [[], 0, 90_000],
      } as Record<string, [terms: number[], left: number, ttl: number]>,
      ([terms, left, ttl]) => ({
        given: writing(90_000, "2", [...terms, 90_000]),
        args: { left, terms },
        reply: 1,
        after: { ...writing(ttl, "2", terms), ...over },
      }),
    ),
    ...each(
      "0: %s has nothing to undo; the tombstone stands",
      {
        "a free lock": [[], {}],
        "a lock that others read": [[], reading({ [OTHER]: [30_000] })],
        "a lock that another writes": [[], written],
        "a lock that the owner only writes": [[], writing(30_000)],
        "a count that is lower": [[60_000, 60_000], mine],
        "a count that is the same": [[60_000], mine],
      } as Record<string, [terms: number[], given: States]>,
      ([terms, given]) => ({
        given,
        args: { left: 60_000, terms },
        reply: 0,
        after: { ...given, ...over },
        thrifty: true,
      }),
    ),
    ...each(
      "0: an earlier run has undone it, and a later one changes nothing more: %s",
      {
        "a nested one": [two, 60_000, [60_000]],
        "a nested one, by now with another TTL": [
          reading({ [ME]: [60_000, 20_000] }, 90_000),
          60_000,
          [60_000],
        ],
        "the last one": [two, 0, []],
      } as Record<string, [given: States, left: number, terms: number[]]>,
      ([given, left, terms]) => ({
        given: { ...given, ...over },
        args: { left, terms, tombstoneTtl: 80_000 },
        reply: 0,
      }),
    ),
  },
});

scriptTable(bench, readOldForce, {
  keys: { tombstone: CALL, lock: LOCK, channel: CHANNEL },
  args: { tombstoneTtl: 20_000, publish: "PUBLISH" },
  rows: {
    "1: all readers' holds and the lock go": {
      given: { ...reading({ [ME]: [30_000, 20_000], [OTHER]: [0, 10_000] }), ...over },
      ...forced(over),
      thrifty: true,
    },
    "1: of a writer that reads as well the write side stays, and nobody is told": {
      given: writing(60_000, "2", [30_000, 50_000]),
      reply: 1,
      after: { ...writing(60_000, "2"), ...done },
    },
    "1: of readers with thousands of holds the last that is looked for goes, too": {
      given: {
        [LOCK]: held({ mode: "read", [ME]: "5002", [OTHER]: "5001" }, 60_000),
        [holdKey(OTHER, 5_001)]: text("1", 30_000),
      },
      ...forced(),
    },
    ...each(
      "0: %s; nothing is changed or announced",
      {
        "a writer's read holds have lapsed": writing(60_000, "2", [0, 0]),
        "a writer does not read": writing(60_000, "2"),
        "readers that have all lapsed are no readers": reading({ [ME]: [0, 0], [OTHER]: [0] }, 30_000),
        "it was free": over,
        "a plain lock of that name": theirs(30_000),
        "a hash without mode, though a hold key fits it": { ...theirs(30_000), ...holds(OTHER, [10_000]) },
      },
      (given) => ({ given, reply: 0, after: { ...given, ...foundNothing } }),
    ),
  },
});
