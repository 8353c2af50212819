// What was aimed at, and what a run reached.
import { entryOf, isPeer, medianOf, ratioBeside, ratioOf } from "./found.mjs";
import { number } from "./tables.mjs";

const times = (floor) => ` × ${floor}`;
const atLeast = (limit) => ({ says: `≥ ${limit}`, holds: (value) => value >= limit });
const atMost = (limit) => ({ says: `≤ ${limit}`, holds: (value) => value <= limit });

/** A figure as it is, or as its ratio to the floor. */
const median = (id, variant, key, peer) => (results) => medianOf(results, [id, variant, key], peer);
const ratio = (id, variant, key, peer) => (results) => ratioOf(results, [id, variant, key], peer);

const besideWire = (id, variant, key) => (results) => ratioBeside(results, [id, variant, key], "wire");

/** `[what, limit, unit, measure(results)]` */
const GOALS = [
  ["serial: cycles/s", atLeast(0.84), times("raw"), ratio("serial", "", "ops")],
  ["serial: cycles/s", atLeast(0.95), times("wire"), besideWire("serial", "", "ops")],
  ["nested: cycles/s", atLeast(0.85), times("raw"), ratio("nested", "", "ops")],
  ["64 in flight: cycles/s", atLeast(1.15), times("raw"), ratio("in-flight", "64 ", "ops")],
  ["1 024 in flight: cycles/s", atLeast(1.15), times("raw"), ratio("in-flight", "1024 ", "ops")],
  ["a cold service: p50", atMost(1.2), times("raw"), ratio("cold", "", "p50")],
  ["a cold service: client CPU of a cycle", atMost(1.25), times("raw"), ratio("cold", "", "cpuUs")],
  ["import → first lock", atMost(1.15), times("raw"), ratio("cold-start", "", "toGrant")],
  ["bundle, minified and gzip", atMost(36), " kB", median("bundle-size", "", "compressed")],
  [
    "16 waiters, loop: hand-overs/s",
    atLeast(1),
    times("raw-fifo"),
    ratio("hand-over", "16 waiters, loop", "handOvers"),
  ],
  [
    "16 waiters, burst: release → next p50",
    atMost(1.15),
    times("raw-fifo"),
    ratio("hand-over", "16 waiters, bursts", "gapP50"),
  ],
  [
    "4 processes × 8: hand-overs/s",
    atLeast(0.85),
    times("raw-blpop"),
    ratio("between-processes", "4 ", "handOvers"),
  ],
  [
    "4 processes × 8: release → next p50",
    atMost(2),
    times("raw-blpop"),
    ratio("between-processes", "4 ", "gapP50"),
  ],
  ...[
    ["Lock", "holdfast"],
    ["FencedLock", "holdfast-fenced"],
    ["write side", "holdfast-write"],
  ].map(([kind, peer]) => [
    `16, 8, 2, 1 waiters, ${kind}: Jain's index over processes`,
    atLeast(0.85),
    "",
    median("fairness", "4 ", "jainProcesses", peer),
  ]),
  [
    "200 idle waiters: release → first",
    atMost(2),
    times("raw-blpop"),
    ratio("idle-waiters", "200 ", "first"),
  ],
  [
    "200 idle waiters: release → all served",
    atMost(1.5),
    times("raw-blpop"),
    ratio("idle-waiters", "200 ", "drain"),
  ],
  ...["200", "10 000"].map((n) => [
    `${n} idle waiters: commands/s`,
    atMost(0.7),
    " (a try every 3 s, a heartbeat)",
    median("idle-waiters", `${n} `, "sentRate"),
  ]),
  ["1 000 renewals: commands", atMost(10.6), "", median("renewals", "1 000 ", "sentPer")],
  ["1 000 renewals: client CPU", atMost(0.5), times("raw"), ratio("renewals", "1 000 ", "cpuPer")],
  ["3 masters: p50", atMost(1.25), times("raw"), ratio("redlock", "3 ", "p50")],
  ["5 masters: p50", atMost(1.2), times("raw"), ratio("redlock", "5 ", "p50")],
  ["3 masters: client CPU of a cycle", atMost(1.4), times("raw"), ratio("redlock", "3 ", "cpuUs")],
  [
    "one of 3 masters slow by 50 ms: p50",
    atMost(1.1),
    " × that with all well",
    (results) =>
      medianOf(results, ["redlock", "one of 3", "p50"]) / medianOf(results, ["redlock", "3 ", "p50"]),
  ],
  ["3 masters, contended: takes/s", atLeast(1.05), times("raw"), ratio("redlock-contended", "", "takes")],
  ["3 masters, contended: longest wait", atMost(100), " ms", median("redlock-contended", "", "waitMax")],
  [
    "MultiLock of 8: p50",
    atMost(1.1),
    times("raw-8-in-parallel"),
    ratio("multi-lock", "", "p50", "holdfast-multi-lock"),
  ],
  [
    "a renewed hold: client heap",
    atMost(3),
    times("raw"),
    ratio("memory", "a hold that is renewed", "heapPer"),
  ],
  ["a waiter: client heap", atMost(2.5), times("raw-fifo"), ratio("memory", "a waiter", "heapPer")],
];

/** `[{ what, goal, value, reached }]`; value is undefined where it was not measured. */
export function goalsOf(results) {
  return GOALS.map(([what, { says, holds }, unit, measure]) => {
    const found = measure(results);
    const value = Number.isFinite(found) ? found : undefined;
    return { what, goal: says + unit, value, reached: value === undefined ? undefined : holds(value) };
  });
}

export function goalRow({ what, goal, value, reached }) {
  const verdict = reached === undefined ? "not measured" : reached ? "yes" : "**no**";
  return [what, goal, number(value), verdict];
}

/** In each scenario with peers the figure that counts, whether more of it is better, and by how much this library is to be ahead. */
const RACES = [
  ["serial", "", "ops", "cycles/s", true, 1],
  ["in-flight", "64 ", "ops", "cycles/s", true, 1],
  ["in-flight", "1024 ", "ops", "cycles/s", true, 1],
  ["hand-over", "16 waiters, loop", "handOvers", "hand-overs/s", true, 10],
  ["hand-over", "128 waiters, loop", "handOvers", "hand-overs/s", true, 10],
  ["hand-over", "16 waiters, bursts", "gapP50", "release → next p50 ms", false, 10],
  ["hand-over", "128 waiters, bursts", "gapP50", "release → next p50 ms", false, 10],
  ["between-processes", "4 ", "handOvers", "hand-overs/s", true, 10],
  ["between-processes", "16 ", "handOvers", "hand-overs/s", true, 10],
  ["idle-waiters", "200 ", "sentRate", "commands/s while idle", false, 10],
  ["idle-waiters", "200 ", "drain", "ms until all are served", false, 10],
  ["renewals", "1 000 ", "sentPer", "commands / 1000 renewals", false, 1],
  ["memory", "a hold with a lease", "heapPer", "client heap B / hold", false, 1],
  ["memory", "a hold that is renewed", "heapPer", "client heap B / renewed hold", false, 1],
  ["redlock", "3 ", "p50", "p50 ms", false, 1],
  ["redlock", "5 ", "p50", "p50 ms", false, 1],
  ["redlock-contended", "", "takes", "takes/s", true, 1],
  ["redlock-contended", "", "waitMax", "longest wait ms", false, 1],
  ["cold-start", "", "toGrant", "import → first lock ms", false, 1],
  ["bundle-size", "", "compressed", "minified, gzip kB", false, 1],
];

/** `[{ what, ours, best, theirs, ahead, wanted, reached }]`: how many times better than the best peer of that figure. */
export function racesOf(results) {
  return RACES.flatMap(([id, variant, key, label, isMoreBetter, wanted]) => {
    const entry = entryOf(results, id, variant);
    const ours = medianOf(results, [id, variant, key]);
    const theirs = Object.keys(entry?.peers ?? {})
      .filter((name) => isPeer(results, name))
      .map((name) => ({ name, value: medianOf(results, [id, variant, key], name) }))
      .filter(({ value }) => value !== undefined)
      .sort((a, b) => (isMoreBetter ? b.value - a.value : a.value - b.value));
    if (ours === undefined || theirs.length === 0) return [];
    const [best] = theirs;
    const ahead = isMoreBetter ? ours / best.value : best.value / ours;
    const what = `${entry.title}, ${entry.variant}: ${label}`;
    return [{ what, ours, best: best.name, theirs: best.value, ahead, wanted, reached: ahead >= wanted }];
  });
}

export function raceRow({ what, ours, best, theirs, ahead, wanted, reached }) {
  const verdict = reached ? "yes" : "**no**";
  return [what, number(ours), `${number(theirs)} (${best})`, `${number(ahead)} ×`, `≥ ${wanted} ×`, verdict];
}
