/** Histories made by hand, each with one thing wrong or just not. */
import { expect, test } from "vitest";
import { type Ask, check, type FindingKind, type History, type Section } from "./checker.js";

const LIMITS = { lease: 1_000, margin: 100, patience: 500 };
const MS = 1_000_000n;

interface Stay {
  readonly by?: string;
  readonly asked?: number;
  readonly left?: number;
  readonly lost?: number;
  readonly intruded?: string;
}

/** A stay in the lock "a" from a millisecond on; its id is `process@from`. */
function stay(from: number, { by = "p", asked = from, left, lost, intruded }: Stay): Section {
  const end = left ?? lost;
  return {
    lock: "a",
    id: `${by}@${from}`,
    process: by,
    askedAt: BigInt(asked) * MS,
    enteredAt: BigInt(from) * MS,
    leftAt: end === undefined ? undefined : BigInt(end) * MS,
    lostAt: lost === undefined ? undefined : BigInt(lost) * MS,
    lease: 1_000,
    intruded,
  };
}

function kinds(history: Partial<History>): FindingKind[] {
  const whole = { sections: [], deaths: new Map(), ...history };
  return check(whole, LIMITS).map(({ kind }) => kind);
}

const died = (by: string, at: number): Map<string, bigint> => new Map([[by, BigInt(at) * MS]]);
const seen = (at: number, ttl: number) => [{ lock: "a", at: BigInt(at) * MS, ttl }];
const asked = (from: number, until: number): Ask => ({
  lock: "a",
  askedAt: BigInt(from) * MS,
  until: BigInt(until) * MS,
});

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
  ["never served", { sections: [stay(0, { left: 9 })], asks: [asked(0, 610)] }, ["stuck"]],
];

test.each(tables)("%s", (_, history, found) => {
  expect(kinds(history)).toEqual(found);
});
