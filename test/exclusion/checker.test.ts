/** Histories made by hand: each has one mistake, or is right by a narrow margin. */
import { expect, test } from "vitest";
import { type Ask, check, type FindingKind, type History } from "./checker.js";
import { tally } from "./order.js";
import type { Place, Section } from "./sections.js";

const LIMITS = { lease: 1_000, margin: 100, patience: 500 };
const MS = 1_000_000n;

interface Stay {
  readonly by?: string;
  readonly owner?: string;
  readonly reads?: boolean;
  readonly asked?: number;
  readonly deadline?: number;
  readonly inLine?: number;
  readonly left?: number;
  readonly lost?: number;
  readonly token?: number;
  readonly intruded?: string;
  readonly torn?: boolean;
}

/** A stay in lock "a" that begins at that millisecond; its id is `process@from`. */
function stay(from: number, options: Stay): Section {
  const {
    by = "p",
    reads: shared = false,
    asked = from,
    inLine,
    left,
    lost,
    token,
    intruded,
    torn,
  } = options;
  const id = `${by}@${from}`;
  const end = left ?? lost;
  return {
    lock: "a",
    id,
    process: by,
    owner: options.owner ?? id,
    shared,
    askedAt: BigInt(asked) * MS,
    place: inLine === undefined ? undefined : placed(inLine, "all"),
    enteredAt: BigInt(from) * MS,
    deadline: options.deadline === undefined ? undefined : BigInt(options.deadline) * MS,
    leftAt: end === undefined ? undefined : BigInt(end) * MS,
    lostAt: lost === undefined ? undefined : BigInt(lost) * MS,
    lease: 1_000,
    token: token === undefined ? undefined : BigInt(token),
    intruded: intruded === undefined ? [] : intruded.split(","),
    torn: torn ?? false,
  };
}

function placed(at: number, before: Place["before"]): Place {
  return { at: BigInt(at) * MS, before };
}

/** A writer that waited in the queue before later readers. */
function writer(from: number, options: Stay & { inLine: number }): Section {
  return { ...stay(from, options), place: placed(options.inLine, "readers") };
}

const reader = (from: number, options: Stay) => stay(from, { ...options, reads: true });

function kinds(history: Partial<History>, limits: object = {}): FindingKind[] {
  const whole = { sections: [], deaths: new Map(), ...history };
  return check(whole, { ...LIMITS, ...limits }).map(({ kind }) => kind);
}

const died = (by: string, at: number): Map<string, bigint> => new Map([[by, BigInt(at) * MS]]);
const seen = (at: number, ttl: number, key?: string) => [
  { lock: "a", at: BigInt(at) * MS, ttl, ...(key ? { key } : {}) },
];
const asked = (from: number, until: number, shared = false): Ask => ({
  lock: "a",
  shared,
  askedAt: BigInt(from) * MS,
  until: BigInt(until) * MS,
});

const away = (from: number, until: number) => [{ from: BigInt(from) * MS, until: BigInt(until) * MS }];

const tables: [title: string, history: Partial<History>, found: FindingKind[]][] = [
  ["nothing happened", {}, []],
  ["one after the other", { sections: [stay(5, { left: 9 }), stay(0, { left: 5 })] }, []],
  ["two at once", { sections: [stay(0, { left: 6 }), stay(5, { left: 9 })] }, ["overlap"]],
  [
    "one around two others",
    { sections: [stay(0, { left: 20 }), stay(5, { left: 9 }), stay(12, { left: 15 })] },
    ["overlap", "overlap"],
  ],
  [
    "locks do not exclude each other",
    { sections: [stay(0, { left: 9 }), { ...stay(5, { left: 7 }), lock: "b" }] },
    [],
  ],
  ["a hold that its clock had declared over", { sections: [stay(0, { lost: 5 }), stay(6, { left: 9 })] }, []],
  ["before that", { sections: [stay(0, { lost: 5 }), stay(4, { left: 9 })] }, ["overlap"]],
  ["after the kill", { sections: [stay(0, { by: "k" }), stay(6, { left: 9 })], deaths: died("k", 5) }, []],
  [
    "before the kill",
    { sections: [stay(0, { by: "k" }), stay(4, { left: 9 })], deaths: died("k", 5) },
    ["overlap"],
  ],
  [
    "before the kill, but after the lease",
    { sections: [stay(0, { by: "k", deadline: 3 }), stay(4, { left: 9 })], deaths: died("k", 5) },
    [],
  ],
  [
    "before the kill and the end of the lease",
    { sections: [stay(0, { by: "k", deadline: 7 }), stay(4, { left: 9 })], deaths: died("k", 5) },
    ["overlap"],
  ],
  [
    "granted, and over before it could begin",
    { sections: [stay(0, { left: 9 }), stay(5, { lost: 5 }), stay(6, { by: "q", asked: 1, lost: 6 })] },
    [],
  ],
  [
    "the register was late, and showed one who came after",
    { sections: [stay(0, { lost: 4, intruded: "q@5" }), stay(5, { by: "q", left: 9 })] },
    [],
  ],
  ["never left, and alive", { sections: [stay(0, {})] }, ["unfinished"]],
  [
    "the register showed one who had left in order",
    { sections: [stay(0, { left: 4 }), stay(5, { left: 9, intruded: "p@0" })] },
    ["intrusion"],
  ],
  [
    "the register showed a dead one",
    { sections: [stay(0, { by: "k" }), stay(6, { left: 9, intruded: "k@0" })], deaths: died("k", 5) },
    [],
  ],
  [
    "the register showed one who lost it before",
    { sections: [stay(0, { lost: 4 }), stay(6, { left: 9, intruded: "p@0" })] },
    [],
  ],
  [
    "the register showed one who was paused on its way out, until its lease was over",
    { sections: [stay(0, { left: 3, deadline: 5 }), stay(6, { left: 9, intruded: "p@0" })] },
    [],
  ],
  [
    "the register showed one who was on its way out, and whose lease was not over",
    { sections: [stay(0, { left: 3, deadline: 7 }), stay(6, { left: 9, intruded: "p@0" })] },
    ["intrusion"],
  ],
  [
    "the register showed nobody we know",
    { sections: [stay(6, { left: 9, intruded: "q@1" })] },
    ["intrusion"],
  ],
  ["all updates there", { counters: [{ lock: "a", value: 7, writes: 7 }] }, []],
  ["one lost", { counters: [{ lock: "a", value: 6, writes: 7 }] }, ["lost update"]],
  ["free at the end", { sections: [stay(0, { left: 9 })], sightings: seen(5_000, -2) }, []],
  ["closed just after", { sections: [stay(0, { left: 9 })], sightings: seen(109, 900) }, []],
  ["closed long after", { sections: [stay(0, { left: 9 })], sightings: seen(110, 900) }, ["orphan"]],
  [
    "closed within the lease of a dead one",
    { sections: [stay(0, { by: "k" })], deaths: died("k", 5), sightings: seen(1_105, 1) },
    [],
  ],
  [
    "and after it",
    { sections: [stay(0, { by: "k" })], deaths: died("k", 5), sightings: seen(1_106, -1) },
    ["orphan"],
  ],
  ["one who died on the way in", { deaths: died("k", 5), sightings: seen(1_105, 1) }, []],
  ["and long ago", { deaths: died("k", 5), sightings: seen(1_106, -1) }, ["orphan"]],
  ["soon served", { sections: [stay(0, { left: 9 }), stay(600, { asked: 5, left: 700 })] }, []],
  ["late served", { sections: [stay(0, { left: 9 }), stay(610, { asked: 5, left: 700 })] }, ["stuck"]],
  ["late, but asked late", { sections: [stay(0, { left: 9 }), stay(2_000, { left: 2_001 })] }, []],
  [
    "served after the lease of a dead one",
    { sections: [stay(0, { by: "k" }), stay(1_600, { asked: 1, left: 1_601 })], deaths: died("k", 5) },
    [],
  ],
  ["gave up in time", { sections: [stay(0, { left: 9 })], asks: [asked(0, 609)] }, []],
  [
    "late served, as soon as the server was back",
    { sections: [stay(0, { left: 9 }), stay(610, { asked: 5, left: 700 })], outages: away(20, 500) },
    [],
  ],
  [
    "late served, long after the server was back",
    { sections: [stay(0, { left: 9 }), stay(1_110, { asked: 5, left: 1_200 })], outages: away(20, 500) },
    ["stuck"],
  ],
  [
    "late served, as soon as what a dead one had left was over",
    { sections: [stay(1_700, { asked: 5, left: 1_800 })], left: new Map([["a", away(20, 1_100)]]) },
    [],
  ],
  [
    "late served, and dead ones had left other locks only",
    { sections: [stay(1_700, { asked: 5, left: 1_800 })], left: new Map([["b", away(20, 1_100)]]) },
    ["stuck"],
  ],
  ["never served", { sections: [stay(0, { left: 9 })], asks: [asked(0, 610)] }, ["stuck"]],
];

test.each(tables)("%s", (_, history, found) => {
  expect(kinds(history)).toEqual(found);
});

const shared: [title: string, history: Partial<History>, found: FindingKind[]][] = [
  ["readers at once", { sections: [reader(0, { left: 6 }), reader(5, { left: 9 })] }, []],
  ["a reader beside a writer", { sections: [stay(0, { left: 6 }), reader(5, { left: 9 })] }, ["overlap"]],
  ["a writer beside a reader", { sections: [reader(0, { left: 6 }), stay(5, { left: 9 })] }, ["overlap"]],
  [
    "a writer beside the longest of three",
    {
      sections: [
        reader(0, { left: 9 }),
        reader(1, { left: 3 }),
        reader(2, { left: 4 }),
        stay(5, { left: 6 }),
      ],
    },
    ["overlap"],
  ],
  [
    "a reader behind a writer, beside an earlier reader",
    { sections: [reader(0, { left: 9 }), stay(2, { left: 3 }), reader(4, { left: 5 })] },
    ["overlap"],
  ],
  [
    "a reader that is dead",
    { sections: [reader(0, { by: "k" }), stay(6, { left: 9 })], deaths: died("k", 5) },
    [],
  ],
  [
    "the register showed two readers, one of them lost",
    {
      sections: [
        reader(0, { left: 4 }),
        reader(1, { by: "q", lost: 4 }),
        stay(5, { left: 9, intruded: "p@0,q@1" }),
      ],
    },
    ["intrusion"],
  ],
  ["what was read has changed", { sections: [reader(0, { left: 4, torn: true })] }, ["torn read"]],
  [
    "a reader that waits for readers",
    { sections: [reader(0, { left: 9_000 }), reader(700, { asked: 5, left: 9_000 })] },
    ["stuck"],
  ],
  [
    "a reader that waits for a writer that waits",
    {
      sections: [
        reader(0, { left: 650 }),
        stay(660, { asked: 3, left: 690 }),
        reader(700, { asked: 5, left: 9_000 }),
      ],
    },
    [],
  ],
  [
    "a reader that waits for nobody any more",
    { sections: [stay(0, { left: 9 })], asks: [asked(0, 610, true)] },
    ["stuck"],
  ],
  [
    "a reader that was let wait by a writer",
    { sections: [stay(0, { left: 20 })], asks: [asked(0, 610, true)] },
    [],
  ],
];

test.each(shared)("shared: %s", (_, history, found) => {
  expect(kinds(history)).toEqual(found);
});

/** The writer waits behind a stay of its own process that ends at 50; the second reader overtakes it at 200. */
const passedLate = [
  stay(0, { left: 50 }),
  reader(100, { by: "q", asked: 5, left: 210 }),
  reader(200, { by: "r", asked: 20, left: 210 }),
  writer(300, { inLine: 10, left: 310 }),
];

const orders: [title: string, history: Partial<History>, found: FindingKind[]][] = [
  ["in turn", { sections: [stay(5, { inLine: 1, left: 6 }), stay(7, { asked: 2, left: 8 })] }, []],
  [
    "out of turn",
    { sections: [stay(7, { inLine: 1, left: 8 }), stay(5, { asked: 2, left: 6 })] },
    ["overtaken"],
  ],
  [
    "asked at the same time",
    { sections: [stay(7, { inLine: 2, left: 8 }), stay(5, { asked: 2, left: 6 })] },
    [],
  ],
  ["not in line", { sections: [stay(7, { asked: 1, left: 8 }), stay(5, { asked: 2, left: 6 })] }, []],
  [
    "two passed one",
    { sections: [stay(7, { inLine: 1, left: 8 }), stay(3, { left: 4 }), stay(5, { left: 6 })] },
    ["overtaken", "overtaken"],
  ],
  [
    "one that is inside comes in again",
    {
      sections: [
        stay(1, { owner: "o", left: 2 }),
        stay(5, { owner: "o", asked: 4, left: 6 }),
        stay(7, { inLine: 3, left: 8 }),
      ],
    },
    [],
  ],
  [
    "a reader passed a writer in line",
    { sections: [writer(7, { inLine: 1, left: 8 }), reader(5, { asked: 2, left: 6 })] },
    ["overtaken"],
  ],
  [
    "a reader passed a writer that the server did not know of yet, behind one of its own process",
    {
      sections: [
        stay(0, { left: 50 }),
        reader(200, { by: "q", asked: 20, left: 210 }),
        reader(220, { by: "r", asked: 20, left: 221 }),
        writer(300, { inLine: 10, left: 310 }),
      ],
    },
    [],
  ],
  ["a reader passed a writer that the server must know of by then", { sections: passedLate }, ["overtaken"]],
  ["… on a machine whose timers are late", { sections: passedLate, lag: 25n * 1_000_000n }, []],
  [
    "a writer passed a writer in line",
    { sections: [writer(7, { inLine: 1, left: 8 }), stay(5, { asked: 2, left: 6 })] },
    [],
  ],
];

test.each(orders)("order: %s", (_, history, found) => {
  expect(kinds(history)).toEqual(found);
});

const tokens: [title: string, history: Partial<History>, found: FindingKind[]][] = [
  ["rising", { sections: [stay(0, { token: 1, left: 1 }), stay(2, { token: 5, left: 3 })] }, []],
  ["falling", { sections: [stay(0, { token: 5, left: 1 }), stay(2, { token: 4, left: 3 })] }, ["token"]],
  ["twice", { sections: [stay(0, { token: 5, left: 1 }), stay(2, { token: 5, left: 3 })] }, ["token"]],
  [
    "of a nested stay",
    { sections: [stay(0, { token: 5, owner: "o", left: 1 }), stay(2, { token: 5, owner: "o", left: 3 })] },
    [],
  ],
  [
    "falling, though both were asked for at once",
    { sections: [stay(1, { asked: 0, token: 5, left: 2 }), stay(3, { asked: 0, token: 4, left: 4 })] },
    ["token"],
  ],
  [
    "the same where holders are thrown out, and may be late to know what they got",
    {
      sections: [stay(1, { asked: 0, token: 5, left: 9 }), stay(3, { asked: 0, token: 4, left: 4 })],
      forced: new Set(["a"]),
    },
    [],
  ],
  [
    "falling, though holders are thrown out",
    {
      sections: [stay(1, { asked: 0, token: 5, left: 9 }), stay(3, { asked: 2, token: 4, left: 4 })],
      forced: new Set(["a"]),
    },
    ["token"],
  ],
];

test.each(tokens)("tokens: %s", (_, history, found) => {
  expect(kinds(history)).toEqual(found);
});

test("remains of a line are found as well, and named", () => {
  const sections = [stay(0, { left: 9 })];
  expect(check({ sections, deaths: new Map(), sightings: seen(110, -1, "queue:{a}") }, LIMITS)).toEqual([
    { kind: "orphan", lock: "a", detail: "nobody's for 101.000 ms and queue:{a} is still there (ttl -1)" },
  ]);
});

test("a process that died in a line may hold up the others, for as long as that is allowed", () => {
  const deaths = died("k", 5);
  const late = (until: number) => ({ deaths, sections: [stay(until, { asked: 0, left: until + 1 })] });
  expect(kinds(late(1_605), { absence: 700 })).toEqual([]);
  expect(kinds(late(1_606), { absence: 700 })).toEqual(["stuck"]);
  expect(kinds(late(2_605), { absence: 2_000 })).toEqual([]);
  expect(kinds({ deaths, sightings: seen(2_105, 1) }, { absence: 2_000 })).toEqual([]);
  expect(kinds({ deaths, sightings: seen(2_106, 1) }, { absence: 2_000 })).toEqual(["orphan"]);
});

test("the tally counts readers beside others, and who had somebody of another process before it", () => {
  const readers = [
    reader(0, { left: 5 }),
    reader(1, { owner: "o", left: 5 }),
    reader(2, { owner: "o", left: 3 }),
    reader(16, { left: 18 }),
    reader(17, { owner: "o", left: 18 }),
  ];
  expect(tally(readers)).toEqual({ together: 3, behind: 0 });
  const waiters = [
    stay(0, { left: 9 }),
    stay(10, { by: "q", asked: 1, inLine: 2, left: 11 }),
    stay(12, { by: "q", asked: 3, left: 13 }),
    stay(14, { by: "r", asked: 3, left: 15 }),
    stay(20, { by: "r", asked: 16, left: 21 }),
  ];
  expect(tally(waiters)).toEqual({ together: 0, behind: 1 });
});
