/** The scripts of a read-write lock. */
import { expect } from "vitest";
import {
  readForce,
  readTake,
  readWriteEnd,
  readWriteKeep,
  writeDowngrade,
  writeForce,
  writePass,
  writeTake,
} from "../../src/scripts/generated.js";
import {
  buried,
  FORCING_ARGS,
  forced,
  held,
  LOCK,
  later,
  left,
  MARKER,
  ME,
  marked,
  OTHER,
  over,
  type States,
  SUCCESSOR,
  SUCCESSOR_TOMBSTONE,
  successorOver,
  TOMBSTONE,
  text,
  theirs,
  useBench,
} from "./bench.js";
import {
  announced,
  CHANNEL,
  holdKey,
  holds,
  MY_WRITE,
  reading,
  SIDE_TOMBSTONE,
  sideBuried,
  THIRD,
  WRITERS,
  waits,
  writing,
} from "./sides.js";
import { each, scriptTable, WRONGTYPE } from "./table.js";

const bench = await useBench();

const mine = reading({ [ME]: [30_000] });
const read = reading({ [OTHER]: [50_000] });
const written = writing(50_000, "2", [], OTHER);
/** How long a silent writer counts as alive; and ME waiting, as it is heard now. */
const PATIENCE = 20_000;
const me = waits({ [ME]: later(PATIENCE) }, PATIENCE);
/** A dead waiting writer, and one that counts as alive for `ms`. */
const aWriterWaits = (ms: number): States => waits({ [OTHER]: -1, [THIRD]: ms });
const otherWriters: States = { [WRITERS]: text("theirs", 60_000) };

scriptTable(bench, readTake, {
  keys: { lock: LOCK, tombstone: TOMBSTONE, hold: holdKey(ME, 1), writers: WRITERS },
  args: { owner: ME, lease: 60_000, yields: 1 },
  rows: {
    ...each("1: a free lock is granted to one that %s", { yields: 1, "does not yield": 0 }, (yields) => ({
      args: { yields: yields },
      reply: 1,
      after: reading({ [ME]: [60_000] }),
    })),
    ...each(
      "1: granted before, it keeps the count, and only raises the TTLs: lease %s",
      { 15000: [15_000, 30_000], 60000: [60_000, 60_000], 120000: [120_000, 120_000] },
      ([lease, term]) => ({
        given: reading({ [ME]: [30_000, 0, 0], [OTHER]: [90_000] }),
        args: { lease },
        reply: 1,
        after: reading({ [ME]: [term, 0, 0], [OTHER]: [90_000] }),
      }),
    ),
    ...each("1: next to other readers, lease %s", { 60000: 60_000, 15000: 15_000 }, (lease) => ({
      given: reading({ [OTHER]: [30_000, 10_000] }),
      args: { lease },
      reply: 1,
      after: reading({ [OTHER]: [30_000, 10_000], [ME]: [lease] }),
    })),
    ...each(
      "{0, ms, owner}: %s",
      {
        "another writes": [written, left(50_000), OTHER],
        "a writer waits for a free lock": [aWriterWaits(25_000), left(25_000), ""],
        "a writer waits for a lock that others read": [
          { ...read, ...aWriterWaits(25_000) },
          left(25_000),
          "",
        ],
      } as Record<string, [given: States, ms: unknown, owner: string]>,
      ([given, ...refused]) => ({ given, reply: [0, ...refused] }),
    ),
    "1: one that finds the waiting writers dead is let in at once": {
      given: aWriterWaits(-1),
      args: { yields: 1 },
      reply: 1,
      after: { ...reading({ [ME]: [60_000] }), ...aWriterWaits(-1) },
    },
    "{2}: a wire id that is over does not get a free lock": {
      given: over,
      reply: [2],
    },
    "other data in the place of the waiting writers stays as it is": {
      given: otherWriters,
      reply: WRONGTYPE,
    },
  },
});

/** States in which ME cannot write, and when it may be free. */
const refused = {
  "another writes": [written, 50_000],
  "another writes, without end": [writing(-1, "1", [], OTHER), -1],
  "others read": [read, 50_000],
  "others read, of whom one hold that lives keeps it for all lapsed ones": [
    reading({ [OTHER]: [0, 25_000, 0], [THIRD]: [0] }, 50_000),
    50_000,
  ],
  "others read, without end": [reading({ [OTHER]: [50_000] }, -1), -1],
  "a plain lock of that name is there": [theirs(50_000), 50_000],
} as Record<string, [given: States, ttl: number]>;
const anotherOwner: unknown = expect.stringMatching(/^[^:]+:[23]$/);

scriptTable(bench, writeTake, {
  keys: { lock: LOCK, tombstone: TOMBSTONE, sideTombstone: SIDE_TOMBSTONE, writers: WRITERS },
  args: { owner: ME, field: MY_WRITE, lease: 60_000, aliveFor: PATIENCE },
  // A waiting writer is gone with the END of its wire id, which follows on a refused command.
  endless: /^holdfast_writers:/,
  rows: {
    "1: a free lock is granted": { reply: 1, after: writing(60_000) },
    "1: granted before, it keeps the counts, and the TTL is raised and never a sum": {
      given: writing(30_000, "12", [10_000]),
      reply: 1,
      after: writing(60_000, "12", [10_000]),
    },
    "1: granted before, it keeps a longer TTL": { given: writing(90_000, "2"), reply: 1 },
    "1: a lock whose readers have all lapsed is free, also when its own TTL has not": {
      given: reading({ [OTHER]: [0, 0], [THIRD]: [0] }, 90_000),
      reply: 1,
      after: writing(60_000),
    },
    ...each("{0, pttl, holder}: %s; who does not wait is not advertised", refused, ([given, ttl]) => ({
      given,
      args: { aliveFor: 0 },
      reply: [0, left(ttl), anotherOwner],
    })),
    "{0, pttl, holder}: who waits is advertised; others stay so, dead ones go": {
      given: { ...read, ...waits({ a: -1, b: 5_000, [ME]: 4_000 }, 5_000) },
      reply: [0, left(50_000), OTHER],
      after: { ...read, ...waits({ b: 5_000, [ME]: later(PATIENCE) }, PATIENCE) },
    },
    "{0, pttl, holder}: the first that waits is advertised": {
      given: written,
      reply: [0, left(50_000), OTHER],
      after: { ...written, ...me },
    },
    "{2}: a wire id that is over does not get a free lock, nor is it advertised": {
      given: { ...over, ...waits({ [OTHER]: 5_000 }) },
      reply: [2],
    },
    ...each(
      "other data in the place of the waiting writers stays as it is (%s)",
      { "a free lock": {}, "a lock that others read": read },
      (given: States) => ({ given: { ...given, ...otherWriters }, reply: WRONGTYPE }),
    ),
  },
});

const strangers: States = {
  read: held({ mode: "read", [OTHER]: "1" }, 15_000),
  ...holds(OTHER, [15_000], "{read}"),
  lapsed: held({ mode: "read", [OTHER]: "1", [ME]: "1" }, 15_000),
  written: held({ mode: "write", [`${OTHER}:write`]: "1" }, 15_000),
  plain: held({ [OTHER]: "1" }, 15_000),
  data: text("theirs", 15_000),
  list: { value: ["theirs"], ttl: -1 },
};
const named = (name: string, base: string, ttl: number): States => ({
  [name]: held({ mode: "read", [ME]: "1" }, ttl),
  ...holds(ME, [ttl], base),
});
const neighbours = (ttl: number): States => ({
  ...named("first", "{first}", ttl),
  ...named("{l}", "{l}", ttl),
});
const many = (length: number, text = "") => Array.from({ length }, () => text);

scriptTable(bench, readWriteKeep, {
  keys: { locks: [LOCK, holdKey(ME, 1)] },
  args: { lease: 30_000, owners: [ME], reads: [""], writes: [""] },
  tolerates: "hget hset set",
  thrifty: true,
  rows: {
    "1: a reader's TTLs are raised, and its count is set; nobody else is kept alive": {
      given: reading({ [ME]: [15_000], [OTHER]: [20_000] }),
      args: { reads: ["3"] },
      reply: 1,
      after: reading({ [ME]: [30_000, 0, 0], [OTHER]: [20_000] }),
    },
    "1: longer TTLs stay, and so does the count: none is sent": {
      given: reading({ [ME]: [60_000, 0], [OTHER]: [90_000] }),
      args: { reads: [""] },
      reply: 1,
    },
    ...each(
      "the writer's counts are set, and its TTLs raised: %s",
      {
        "2: it does not read": [writing(15_000), "0", "4", 2, writing(30_000, "4")],
        "3: it comes to read": [writing(15_000), "2", "1", 3, writing(30_000, "1", [30_000, 0])],
        "3: without counts": [writing(15_000, "2", [10_000]), "", "", 3, writing(30_000, "2", [30_000])],
      } as Record<string, [given: States, reads: string, writes: string, found: number, after: States]>,
      ([given, reads, writes, found, after]) => ({
        given,
        args: { reads: [reads], writes: [writes] },
        reply: found,
        after,
      }),
    ),
    "a reader whose key has lapsed is not made anew: -1: others read": {
      given: reading({ [ME]: [0], [OTHER]: [15_000] }),
      args: { reads: ["1"] },
      reply: -1,
    },
    "0 and -1: what is gone or another's stays so, and its neighbours are kept": {
      given: { ...strangers, ...neighbours(15_000) },
      keys: { locks: ["first", "gone", "read", "lapsed", "written", "plain", "data", "list", "{l}"] },
      args: { owners: many(9, ME), reads: many(9), writes: many(9) },
      reply: [1, 0, -1, 0, -1, -1, -1, -1, 1],
      after: { ...strangers, ...neighbours(30_000) },
    },
    "3: whoever may not count keeps the lock all the same": {
      given: writing(15_000, "1", [10_000]),
      args: { reads: ["1"], writes: ["2"] },
      mayNot: "hset",
      reply: 3,
      after: writing(30_000, "1", [30_000]),
    },
  },
});

const tombs = { tombstones: ["over:1", "over:2", "over:3"] };
const allOver = (...found: number[]): States =>
  Object.fromEntries(found.map((each, i) => [`over:${i + 1}`, text(String(each), 40_000)]));
const countless = (ttl: number, mine: Record<string, string> = {}): States => ({
  [LOCK]: held({ mode: "read", ...mine, [OTHER]: "99999" }, ttl),
});

scriptTable(bench, readWriteEnd, {
  keys: {
    lock: LOCK,
    channel: CHANNEL,
    writers: WRITERS,
    nextTombstone: SUCCESSOR_TOMBSTONE,
    tombstones: [TOMBSTONE],
  },
  args: { tombstoneTtl: 40_000, publish: "PUBLISH", nextWriter: "", aliveFor: PATIENCE, owners: [ME] },
  counts: true,
  thrifty: true,
  tolerates: "hdel",
  endless: /^holdfast_writers:/,
  rows: {
    "{heard, 1}: the last reader, whatever its count": {
      given: reading({ [ME]: [30_000, 0, 0] }),
      reply: [1, 1],
      after: over,
      heard: announced("0"),
    },
    "{heard, 1}: a lock that outlives its only reader, by a pause of the server, goes with it [B5]": {
      given: reading({ [ME]: [30_000] }, 30_500),
      reply: [1, 1],
      after: over,
      heard: announced("0"),
    },
    "{0, 1}: one of several readers; the TTL is the longest that is left": {
      given: reading({ [OTHER]: [10_000], [THIRD]: [20_000, 30_000, 0], [ME]: [60_000] }),
      reply: [0, 1],
      after: { ...reading({ [OTHER]: [10_000], [THIRD]: [20_000, 30_000, 0] }), ...over },
    },
    "{heard, 1}: when the other readers have lapsed, the last that lives takes them away, though the lock would have lasted longer":
      {
        given: reading({ [ME]: [30_000], [OTHER]: [0, 0], [THIRD]: [0] }, 90_000),
        reply: [1, 1],
        after: over,
        heard: announced("0"),
      },
    ...each(
      "{0, 1}: readers of Redisson with more holds than are looked for keep the lock, %s",
      { "for its time": [60_000, 60_000], "which is without end": [-1, 2 ** 52] },
      ([ttl, after]) => ({
        given: { ...countless(ttl, { [ME]: "1" }), ...holds(ME, [60_000]) },
        reply: [0, 1],
        after: { ...countless(after), ...over },
      }),
    ),
    "{0, -1}: a reader whose key has lapsed has lost its side; others keep the lock": {
      given: reading({ [ME]: [0], [OTHER]: [30_000] }),
      reply: [0, -1],
      after: { ...reading({ [OTHER]: [30_000] }), ...buried(-1) },
    },
    "{heard, -1}: the last reader whose key has lapsed takes away what is left": {
      given: reading({ [ME]: [0], [OTHER]: [0] }, 30_000),
      reply: [1, -1],
      after: buried(-1),
      heard: announced("0"),
    },
    "{heard, 2}: the writer, whatever its count": {
      given: writing(30_000, "12"),
      reply: [1, 2],
      after: buried(2),
      heard: announced("1"),
    },
    "the next writer of its process is advertised when the writer ends": {
      given: { ...writing(30_000) },
      args: { nextWriter: SUCCESSOR, aliveFor: PATIENCE },
      reply: [1, 2],
      after: { ...waits({ [SUCCESSOR]: later(PATIENCE) }, PATIENCE), ...buried(2) },
      heard: announced("1"),
    },
    "{0, found}: sent again it tells what it found at first, and leaves a free lock alone": {
      given: buried(3),
      args: { tombstoneTtl: 90_000 },
      reply: [0, 3],
    },
    "{0, 0}: nobody has the lock; the tombstone stands before a late TAKE": {
      reply: [0, 0],
      after: buried(0),
    },
    "{0, -1}: another's lock stays as it is": {
      given: written,
      reply: [0, -1],
      after: { ...written, ...buried(-1) },
    },
    ...each(
      "a waiting writer gives up, %s",
      {
        "the last: the readers are told": [{}, announced("1")],
        "not the last: nobody is told": [{ [THIRD]: 6_000 }, []],
      } as Record<string, [others: Record<string, number>, told: ReturnType<typeof announced>]>,
      ([others, heard]) => ({
        given: { ...read, ...waits({ ...others, [ME]: 5_000 }) },
        reply: [0, -1],
        after: { ...read, ...(heard.length > 0 ? {} : waits(others)), ...buried(-1) },
        heard,
      }),
    ),
    "{heard, found, ...}: of many each has its answer and its tombstone": {
      given: { ...reading({ [ME]: [30_000], [THIRD]: [0] }), ...waits({ [OTHER]: 5_000 }) },
      keys: tombs,
      args: { owners: [ME, OTHER, THIRD] },
      reply: [1, 1, -1, -1],
      after: allOver(1, -1, -1),
      heard: announced("0"),
    },
    ...each(
      "other data in the place of the waiting writers stays as it is, and so does %s",
      { "a lock that is read": mine, "a lock that is written": writing(30_000) },
      (given: States) => ({ given: { ...given, ...otherWriters }, reply: WRONGTYPE }),
    ),
  },
});

scriptTable(bench, writeDowngrade, {
  keys: { lock: LOCK, channel: CHANNEL, sideTombstone: SIDE_TOMBSTONE, hold: holdKey(ME, 1) },
  args: { owner: ME, field: MY_WRITE, reads: 2, left: 60_000, tombstoneTtl: 40_000, publish: "PUBLISH" },
  counts: true,
  thrifty: true,
  tolerates: "hdel hexists",
  rows: {
    ...each(
      "{heard, 2}: the owner goes on as a reader until its deadline, %s",
      {
        "which is later": [writing(30_000, "3", [10_000]), 60_000, 60_000],
        "which is that of the lock": [writing(30_000, "1", [10_000]), 20_000, 30_000],
      } as Record<string, [given: States, left: number, ttl: number]>,
      ([given, left, ttl]) => ({
        given,
        args: { left },
        reply: [1, 2],
        after: { ...reading({ [ME]: [ttl, 0] }), ...sideBuried(2) },
        heard: announced("1"),
      }),
    ),
    "{0, 2}: sent again it leaves the reader alone": { given: { ...mine, ...sideBuried(2) }, reply: [0, 2] },
    "{0, found}: it does not write: nobody has the lock": {
      reply: [0, 0],
      after: sideBuried(0),
    },
  },
});

const successor = writing(20_000, "1", [], SUCCESSOR);

scriptTable(bench, writePass, {
  keys: {
    lock: LOCK,
    channel: CHANNEL,
    tombstone: TOMBSTONE,
    successorTombstone: SUCCESSOR_TOMBSTONE,
    successorSide: `${SUCCESSOR_TOMBSTONE}:write`,
    writers: WRITERS,
    nextTombstone: "over:next",
  },
  args: {
    owner: ME,
    field: MY_WRITE,
    successor: SUCCESSOR,
    successorField: `${SUCCESSOR}:write`,
    lease: 20_000,
    tombstoneTtl: 40_000,
    publish: "PUBLISH",
    nextWriter: "",
    aliveFor: PATIENCE,
  },
  counts: true,
  thrifty: true,
  tolerates: "hdel hexists pexpire",
  rows: {
    "{0, 2, 1}: the successor writes, and nobody is told": {
      given: writing(30_000, "2"),
      reply: [0, 2, 1],
      after: { ...successor, ...buried(2) },
    },
    "{0, 2, 1}: neither the giver nor the successor waits any more; the next is advertised": {
      given: { ...writing(30_000), ...waits({ [ME]: 1, [SUCCESSOR]: 9_000, [OTHER]: 9_000 }) },
      args: { nextWriter: THIRD },
      reply: [0, 2, 1],
      after: { ...successor, ...waits({ [OTHER]: 9_000, [THIRD]: later(PATIENCE) }), ...buried(2) },
    },
    "{0, 2, 1}: what the giver does not know of its reading goes": {
      given: writing(30_000, "1", [25_000]),
      reply: [0, 2, 1],
      after: { ...successor, ...holds(ME, [25_000]), ...buried(2) },
    },
    "{0, -1, 1}: the successor that writes by a try of its own does so for its whole lease from now [B292]": {
      given: writing(5_000, "1", [], SUCCESSOR),
      reply: [0, -1, 1],
      after: { ...successor, ...buried(-1) },
    },
    "{0, 2, 0}: sent again when another has it": { given: { ...read, ...buried(2) }, reply: [0, 2, 0] },
    "{heard, 2, 0}: given back, and told, where the successor is over": {
      given: { ...writing(30_000), ...successorOver },
      reply: [1, 2, 0],
      after: { ...successorOver, ...buried(2) },
      heard: announced("1"),
    },
    "{heard, 2, 0}: given back where the successor's TTL is refused": {
      given: writing(30_000),
      mayNot: "pexpire",
      reply: [1, 2, 0],
      after: buried(2),
      heard: announced("1"),
    },
    "{0, found, 0}: the giver does not write: nobody has the lock": {
      reply: [0, 0, 0],
      after: buried(0),
    },
    "other data in the place of the waiting writers stays as it is, and so does the lock": {
      given: { ...writing(30_000), ...otherWriters },
      reply: WRONGTYPE,
    },
  },
});

const FORCING_KEYS = { lock: LOCK, channel: CHANNEL, marker: MARKER };

scriptTable(bench, readForce, {
  keys: FORCING_KEYS,
  args: FORCING_ARGS,
  thrifty: true,
  rows: {
    "{owner, ...}: whoever reads, is over; a further key of Redisson's lapses": {
      given: reading({ [ME]: [30_000], [OTHER]: [0, 10_000] }),
      reply: [ME, OTHER],
      after: { ...forced(ME, OTHER), [`{job}:${OTHER}:rwlock_timeout:2`]: text("1", 10_000) },
      heard: announced("0"),
    },
    "a copy gives the first answer, and leaves later readers alone": {
      given: { ...mine, ...marked(OTHER, THIRD) },
      reply: [OTHER, THIRD],
    },
    "{}: readers that have all lapsed are no readers; what is left of them goes": {
      given: reading({ [ME]: [0, 0], [OTHER]: [0] }, 30_000),
      reply: [],
      after: marked(),
    },
    "{}: a writer's own reads are left alone": {
      given: writing(60_000, "2", [30_000]),
      reply: [],
      after: { ...writing(60_000, "2", [30_000]), ...marked() },
    },
  },
});

scriptTable(bench, writeForce, {
  keys: FORCING_KEYS,
  args: FORCING_ARGS,
  thrifty: true,
  rows: {
    "{field}: whoever writes, is over on that side": {
      given: written,
      reply: [`${OTHER}:write`],
      after: forced(`${OTHER}:write`),
      heard: announced("1"),
    },
    ...each(
      "{field}: a writer that reads as well goes on as a reader: %s",
      {
        "of a lock with a longer TTL": [90_000, [10_000, 30_000, 0]],
        "of a lock that somebody else left without end": [-1, [10_000, 30_000]],
      } as Record<string, [ttl: number, terms: number[]]>,
      ([ttl, terms]) => ({
        given: writing(ttl, "2", terms),
        reply: [MY_WRITE],
        after: { ...reading({ [ME]: terms }, 30_000), ...forced(MY_WRITE) },
        heard: announced("1"),
      }),
    ),
    "a copy gives the first answer, and leaves the next writer alone": {
      given: { ...written, ...marked(MY_WRITE) },
      reply: [MY_WRITE],
    },
    "{}: it was free, and nothing is changed": {
      reply: [],
      after: marked(),
    },
  },
});
