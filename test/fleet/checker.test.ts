/**
 * The test of the checker: histories that are made by hand. Each has one mistake, or is right by a narrow margin.
 * Instants are milliseconds.
 */
import { expect, test } from "vitest";
import { check, type History } from "./checker.js";
import { type Entry, MS, type Stay } from "./history.js";
import { searchAll } from "./linear.js";

const LIMITS = { patience: 500, absence: 1_000, permits: 2, largest: 1 };

/**
 * Stays in words: `0-9,by=k,leased=5` begins at 0, ends at 9, in the process k, with a lease until 5. The id of each, and
 * of its one visit, is `process@from`.
 */
function staysOf(text: string, lock: string): Stay[] {
  return text.split(" ").map((words): Stay => {
    const [times = "", ...more] = words.split(",");
    const [from, left] = times.split("-").map((ms) => Number(ms) * MS);
    const said = Object.fromEntries(more.map((word) => word.split("=")));
    const { by = "p", met, token } = said;
    const at = (name: string) => (said[name] === undefined ? undefined : Number(said[name]) * MS);
    const id = `${by}@${times.split("-")[0]}`;
    return {
      ...{ lock, id, process: by, owner: said.owner ?? id, lease: 1_000, visits: [id] },
      ...{
        shared: "reads" in said,
        lost: "lost" in said,
        torn: "torn" in said,
        renewed: !("leased" in said),
      },
      permits: lock.startsWith("permits") ? 1 : 0,
      askedAt: at("asked") ?? (from as number),
      enteredAt: from as number,
      leftAt: left,
      until: at("leased") ?? Number.POSITIVE_INFINITY,
      refusedAt: at("refused"),
      place: at("place"),
      met: met?.split("+") ?? [],
      token: token && BigInt(token),
    };
  });
}

const deaths = new Map([["k", 5 * MS]]);
const outages = [{ from: 20 * MS, until: 500 * MS }];
const counted = (value: number, writes: number) => ({ counters: [{ lock: "lock-1", value, writes }] });
const asked = (until: number) => ({ askedAt: 0, until: until * MS, shared: false });

/** What is found in a history of some stays in the lock, and of more. */
type Row = [title: string, found: string, stays: string, more?: Partial<History>];

const exclusion: Row[] = [
  ["one after the other", "", "5-9 0-5"],
  ["two at once", "overlap", "0-6 5-9"],
  ["one around two others", "overlap overlap", "0-20 5-9 12-15"],
  ["two of one owner", "", "0-6,owner=o 5-9,owner=o"],
  ["one after a hold that had ended", "", "0-9,lost,leased=5 6-9"],
  ["one before the hold had ended", "overlap", "0-9,lost,leased=5 4-9"],
  ["one after the kill of a holder that was renewed", "", "0,by=k 6-9", { deaths }],
  ["one before the kill", "overlap", "0,by=k 4-9", { deaths }],
  ["one after the kill, but within the lease", "overlap", "0,by=k,leased=7 6-9", { deaths }],
  ["one after the kill and the lease", "", "0,by=k,leased=6 6-9", { deaths }],
  ["a grant that was over before it arrived", "", "0-9 5-6,lost,leased=5"],
  ["a stay without an end in a process that lives", "unfinished", "0"],
  ["readers at once", "", "0-6,reads 5-9,reads"],
  ["a reader beside a writer", "overlap", "0-6 5-9,reads"],
  ["a writer beside the longer of two readers", "overlap", "0-9,reads 1-3,reads 5-6"],
  ["a visitor that met one who had left in order", "intrusion", "0-4 5-9,met=p@0"],
  ["a visitor that met a dead one", "", "0,by=k 6-9,met=k@0", { deaths }],
  ["a visitor that met one whose hold had ended", "", "0-5,lost,leased=4 6-9,met=p@0"],
  ["a visitor that met one on its way out whose lease was over", "", "0-3,leased=5 6-9,met=p@0"],
  ["a visitor that was late, and met one who came after it", "", "0-8,lost,leased=4,met=q@5 5-9,by=q"],
  ["a reader whose value had changed", "torn read", "0-4,reads,torn"],
  ["a counter with all increments", "", "0-4", counted(7, 7)],
  ["a counter that has lost one", "lost update", "0-4", counted(6, 7)],
  [
    "a counter that lost a write which came too late",
    "",
    "0-4",
    { ...counted(6, 7), doubtful: new Set(["lock-1"]) },
  ],
  ["a key that is nobody's", "orphan", "0-4", { remains: [{ lock: "lock-1", key: "lock-1", ttl: -1 }] }],
  ["tokens that rise", "", "0-1,token=1 2-3,token=5"],
  ["tokens that fall", "token", "0-1,token=5 2-3,token=4"],
  ["a token twice", "token", "0-1,token=5 2-3,token=5"],
  ["the token of a nested stay", "", "0-3,token=5,owner=o 1-2,token=5,owner=o"],
];

const waits: Row[] = [
  ["a call that was served soon", "", "0-9 509-600,asked=5"],
  ["a call that was served late", "stuck", "0-9 510-600,asked=5"],
  ["a call that gave up in time", "", "0-9", { asks: [{ lock: "lock-1", permits: 0, ...asked(509) }] }],
  ["a call that gave up late", "stuck", "0-9", { asks: [{ lock: "lock-1", permits: 0, ...asked(510) }] }],
  ["a call that was served soon after an outage", "", "0-9 900-901,asked=5", { outages }],
  ["a call that was served long after an outage", "stuck", "0-9 1100-1101,asked=5", { outages }],
  ["a call behind a dead one", "", "0,by=k 1500-1501,asked=1", { deaths }],
  ["a call behind a dead one, for too long", "stuck", "0,by=k 1600-1601,asked=1", { deaths }],
  ["a reader that waits for readers", "stuck", "0-9000,reads 700-9000,reads,asked=5"],
  ["a reader that waits for a writer that waits", "", "0-650,reads 660-690,asked=3 700-900,reads,asked=5"],
];

const inOrder: Row[] = [
  ["the later call served later", "", "5-6,place=1 7-8,asked=2"],
  ["the later call served first", "overtaken", "7-8,place=1 5-6,asked=2"],
  ["a call that was made before the other one stood in the queue", "", "7-8,place=2 5-6,asked=2"],
  ["an owner that is inside and comes in again", "", "1-2,owner=o 5-6,owner=o,asked=4 7-8,place=3"],
  [
    "a process that stood still",
    "",
    "700-800,place=1 5-6,by=q,asked=2",
    { stalls: new Map([["p", outages]]) },
  ],
  [
    "another one that stood still",
    "overtaken",
    "7-8,place=1 5-6,by=q,asked=2",
    { stalls: new Map([["q", outages]]) },
  ],
];

const byForce: Row[] = [
  ["tokens that fall, of two calls at once", "", "1-9,asked=0,token=5 3-4,asked=0,token=4"],
  ["tokens that fall", "token", "1-9,asked=0,token=5 3-4,asked=2,token=4"],
];

const permits: Row[] = [
  ["as many as there are", "", "0-100 10-110"],
  ["one too many", "overlap", "0-100 10-110 50-60"],
  ["one too many, as the witness saw it", "overlap intrusion", "0-100 10-110 50-60,met=p@0+p@10"],
  ["one after the lease of another", "", "0-100 5-100,leased=30 30-60"],
  ["one within the lease of a dead one", "overlap", "0-100 4,by=k,leased=90 41-60", { deaths }],
  ["all back", "", "0-1", { rests: [{ lock: "permits-1", available: 2 }] }],
  ["one lost", "sum", "0-1", { rests: [{ lock: "permits-1", available: 1 }] }],
  ["one refused after its lease", "", "0-60,leased=50,lost,refused=60"],
  ["one refused within its lease", "refused", "0-60,leased=90,lost,refused=60"],
  [
    "a call while they were out",
    "",
    "0-100 10-110",
    { asks: [{ lock: "permits-1", permits: 1, ...asked(599) }] },
  ],
  [
    "a call while one was free",
    "stuck",
    "0-100 10-110",
    { asks: [{ lock: "permits-1", permits: 1, ...asked(601) }] },
  ],
];

const places = {
  "lock-1": [...exclusion, ...waits],
  "fair-1": inOrder,
  "forced-1": byForce,
  "permits-1": permits,
};
const rows = Object.entries(places).flatMap(([lock, all]) =>
  all.map((row): [string, ...Row] => [lock, ...row]),
);

test.each(rows)("in a history of %s with %s the checker finds: %s", (lock, _, found, stays, more = {}) => {
  const findings = check({ stays: staysOf(stays, lock), deaths: new Map(), ...more }, LIMITS);
  expect(findings.map(({ kind }) => kind).join(" ")).toBe(found);
});

let calls = 0;

/** A call of a journal, and its answer a millisecond later. */
function entry(
  call: string,
  lock: string,
  from: number,
  answer: Entry["answer"],
  more: Partial<Entry> = {},
): Entry {
  const [at, answeredAt] = [from * MS, (from + 1) * MS];
  return {
    id: `c${++calls}`,
    process: "p",
    at,
    answeredAt,
    call,
    names: [lock],
    side: "write",
    answer,
    ...more,
  };
}

const grant = (from: number, lock: string, more: Entry["answer"] = {}) =>
  entry("acquire", lock, from, { granted: true, until: (from + 100) * MS, ...more });
const release = (of: Entry, from: number, done = true) =>
  entry("release", of.names[0] as string, from, { done }, { of: of.id, held: done });

function isLinear(lock: string, ...entries: Entry[]): boolean | undefined {
  return searchAll({ entries }, 2).get(lock)?.linearizable;
}

test("journals become operations: a grant ends by its release, or at any time after its lease", () => {
  const [first, second] = [grant(0, "lock-1"), grant(10, "lock-1")];
  expect(isLinear("lock-1", first, release(first, 5), second)).toBe(true);
  expect(isLinear("lock-1", first, second)).toBe(false);
  expect(isLinear("lock-1", first, grant(101, "lock-1"))).toBe(true);
  expect(isLinear("lock-1", first, release(first, 150, false), grant(50, "lock-1"))).toBe(false);
});
