/** Histories of semaphores made by hand: each has one mistake, or is right by a narrow margin. */
import { expect, test } from "vitest";
import { type CrowdFindingKind, type CrowdHistory, checkCrowd, type Stay } from "./crowd-checker.js";

const LIMITS = { permits: 2, largest: 1, patience: 500, lease: 1_000, margin: 10 };
const MS = 1_000_000n;

interface Visit {
  readonly by?: string;
  readonly permits?: number;
  readonly asked?: number;
  readonly left?: number;
  readonly lapsed?: number;
  readonly lost?: number;
  readonly refused?: number;
  readonly met?: readonly string[];
  readonly kept?: boolean;
}

/** A stay in semaphore "a" that begins at that millisecond; its id is `process:from`. */
function stay(from: number, options: Visit): Stay {
  const {
    by = "p",
    permits = 1,
    asked = from,
    left,
    lapsed,
    lost,
    refused,
    met = [],
    kept = false,
  } = options;
  const id = `${by}:${from}`;
  return {
    lock: "a",
    id,
    process: by,
    permits,
    askedAt: at(asked),
    enteredAt: at(from),
    leftAt: maybe(left),
    lostAt: maybe(lost),
    lapsedAt: maybe(lapsed),
    refusedAt: maybe(refused),
    inside: [...met, id],
    kept,
  };
}

const at = (ms: number): bigint => BigInt(ms) * MS;
const maybe = (ms: number | undefined): bigint | undefined => (ms === undefined ? undefined : at(ms));
const died = (by: string, ms: number): Map<string, bigint> => new Map([[by, at(ms)]]);
const vain = (asked: number, until: number) => [
  { lock: "a", permits: 1, askedAt: at(asked), until: at(until) },
];

function kinds(history: Partial<CrowdHistory>): CrowdFindingKind[] {
  const whole = { stays: [], inVain: [], deaths: new Map(), rests: [], ...history };
  return checkCrowd(whole, LIMITS).map(({ kind }) => kind);
}

const full = [stay(0, { left: 100 }), stay(10, { left: 110 })];

const tables: [title: string, history: Partial<CrowdHistory>, found: CrowdFindingKind[]][] = [
  ["nothing happened", {}, []],
  ["as many as there are", { stays: full }, []],
  ["one more", { stays: [...full, stay(50, { left: 60 })] }, ["overflow"]],
  [
    "one that wants both",
    { stays: [stay(0, { left: 100 }), stay(50, { permits: 2, left: 60 })] },
    ["overflow"],
  ],
  ["one after another", { stays: [...full, stay(100, { left: 120 })] }, []],
  ["semaphores have their own", { stays: [...full, { ...stay(50, { left: 60 }), lock: "b" }] }, []],
  [
    "after a lease",
    { stays: [...full, stay(20, { lapsed: 25, left: 30 })].slice(1).concat(stay(26, { left: 40 })) },
    [],
  ],
  [
    "after a lease has ended",
    { stays: [stay(0, { left: 100 }), stay(5, { lapsed: 30, left: 100 }), stay(41, { left: 60 })] },
    [],
  ],
  [
    "before that",
    { stays: [stay(0, { left: 100 }), stay(5, { lapsed: 90, left: 100 }), stay(41, { left: 60 })] },
    ["overflow"],
  ],
  [
    "a dead process has what it had until the lease ends",
    {
      stays: [stay(0, { left: 100 }), stay(5, { by: "k", lapsed: 90 }), stay(41, { left: 60 })],
      deaths: died("k", 20),
    },
    ["overflow"],
  ],
  [
    "and not for longer",
    {
      stays: [stay(0, { left: 200 }), stay(5, { by: "k", lapsed: 90 }), stay(101, { left: 160 })],
      deaths: died("k", 20),
    },
    [],
  ],
  [
    "met too many",
    { stays: [...full, stay(50, { left: 60, met: ["p:0", "p:10"] })] },
    ["overflow", "intrusion"],
  ],
  ["met one that had gone", { stays: [...full, stay(101, { left: 109, met: ["p:0", "p:10"] })] }, []],
  [
    "met one that came while it was slow to sign in",
    {
      stays: [
        stay(0, { lapsed: 40, left: 100 }),
        stay(10, { left: 90, met: ["p:0", "p:60"] }),
        stay(60, { left: 80 }),
      ],
    },
    [],
  ],
  ["never left", { stays: [stay(0, {})] }, ["unfinished"]],
  ["never left, and died", { stays: [stay(0, { by: "k" })], deaths: died("k", 5) }, []],
  ["all there", { rests: [{ lock: "a", available: 2, acquired: 0 }] }, []],
  ["one lost", { rests: [{ lock: "a", available: 1, acquired: 0 }] }, ["sum"]],
  ["one invented", { rests: [{ lock: "a", available: 3, acquired: 0 }] }, ["sum"]],
  ["one still out", { rests: [{ lock: "a", available: 1, acquired: 1 }] }, ["sum"]],
  ["refused after its lease", { stays: [stay(0, { lapsed: 50, left: 60, refused: 61 })] }, []],
  ["refused before", { stays: [stay(0, { lapsed: 90, left: 60, refused: 61 })] }, ["refused"]],
  ["refused, and it has no lease", { stays: [stay(0, { left: 60, refused: 61 })] }, ["refused"]],
  [
    "refused after its loss was told",
    { stays: [stay(0, { lapsed: 90, left: 60, lost: 50, refused: 61 })] },
    [],
  ],
  [
    "after a loss",
    { stays: [stay(0, { left: 100 }), stay(5, { lost: 30, lapsed: 90, left: 100 }), stay(31, { left: 60 })] },
    [],
  ],
  [
    "before a loss",
    { stays: [stay(0, { left: 100 }), stay(5, { lost: 30, lapsed: 90, left: 100 }), stay(29, { left: 60 })] },
    ["overflow"],
  ],
  ["waited for what was free", { inVain: vain(0, 600) }, ["stuck"]],
  [
    "waited for a server that was away",
    { inVain: vain(0, 600), outages: [{ from: 9n * MS, until: 200n * MS }] },
    [],
  ],
  [
    "waited for a server that was away, and on",
    { inVain: vain(0, 800), outages: [{ from: 9n * MS, until: 200n * MS }] },
    ["stuck"],
  ],
  ["waited for a moment", { inVain: vain(0, 400) }, []],
  ["waited for what was taken", { stays: [stay(0, { permits: 2, left: 500 })], inVain: vain(0, 600) }, []],
  [
    "waited for what was taken, and on",
    { stays: [stay(0, { permits: 2, left: 500 })], inVain: vain(0, 1_100) },
    ["stuck"],
  ],
  ["served late", { stays: [stay(600, { asked: 0, left: 601 })] }, ["stuck"]],
  ["waited for one who died in that moment", { inVain: vain(0, 1_600), deaths: died("k", 300) }, []],
];

test("the loss of a kept permit is a violation only while nothing happens", () => {
  const stays = [stay(0, { left: 50, lost: 40, kept: true }), stay(60, { left: 90, kept: true })];
  const history = { stays, inVain: [], deaths: new Map(), rests: [] };
  expect(checkCrowd(history, LIMITS)).toEqual([]);
  expect(checkCrowd(history, { ...LIMITS, keeps: true }).map(({ kind }) => kind)).toEqual(["unkept"]);
});

test.each(tables)("%s", (_, history, found) => {
  expect(kinds(history)).toEqual(found);
});
