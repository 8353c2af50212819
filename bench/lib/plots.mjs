// Which plots are made of a run. Each is left out where the run has nothing for it.
import { entryOf, figureOf } from "./found.mjs";
import { dots, lines } from "./plot.mjs";
import { median, SHARES } from "./stats.mjs";

const THROUGHPUT = [
  ["serial", "", "ops", "serial"],
  ["nested", "", "ops", "nested"],
  ["in-flight", "64 ", "ops", "64 in flight"],
  ["in-flight", "1024 ", "ops", "1 024 in flight"],
  ["hand-over", "16 waiters, loop", "handOvers", "hand-overs, 16 waiters"],
  ["hand-over", "128 waiters, loop", "handOvers", "hand-overs, 128 waiters"],
  ["between-processes", "4 ", "handOvers", "hand-overs, 4 processes × 8"],
  ["between-processes", "16 ", "handOvers", "hand-overs, 16 processes × 2"],
  ["redlock", "3 ", "ops", "3 masters"],
  ["redlock", "5 ", "ops", "5 masters"],
  ["redlock-contended", "", "takes", "3 masters, contended"],
];

const LATENCIES = [
  [
    "latency-16-waiters",
    "hand-over",
    "16 waiters, bursts",
    "From release to the next of 16 waiters, one process",
  ],
  [
    "latency-128-waiters",
    "hand-over",
    "128 waiters, bursts",
    "From release to the next of 128 waiters, one process",
  ],
  ["latency-4-processes", "between-processes", "4 ", "From release to the next, 4 processes × 8 waiters"],
];

const GROWTHS = [
  [
    "growth-waiters",
    "growth-waiters",
    "perHandOverUs",
    "Time of a hand-over as waiters get more",
    "waiters of one process",
    "µs / hand-over",
    "log",
  ],
  [
    "growth-waiters-heap",
    "growth-waiters",
    "heapPer",
    "Memory of a waiter as they get more",
    "waiters of one process",
    "client heap B / waiter",
    "log",
  ],
  [
    "growth-processes",
    "growth-processes",
    "handOvers",
    "Hand-overs as processes get more",
    "processes of 4 waiters",
    "hand-overs / s",
    "linear",
  ],
  [
    "growth-holds",
    "growth-holds",
    "cpuRound",
    "Renewing once as holds get more",
    "renewed holds",
    "client CPU ms / round",
    "log",
  ],
  [
    "growth-holds-heap",
    "growth-holds",
    "heapAll",
    "Memory as holds get more",
    "renewed holds",
    "client heap kB of all",
    "log",
  ],
  [
    "growth-masters",
    "growth-masters",
    "p50",
    "Take + give back as masters get more",
    "masters",
    "p50 ms",
    "log",
  ],
];

/** Shown where a percentile stands as 1 / (1 - share). */
const PERCENTILES = [0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

function throughput(results, isFloor) {
  const rows = THROUGHPUT.flatMap(([id, variant, key, label]) => {
    const entry = entryOf(results, id, variant);
    const names = Object.keys(entry?.peers ?? {}).filter((name) => !isFloor(name) || name === entry.floor);
    const found = names.map((name) => ({
      name: isFloor(name) ? "floor" : name,
      isFloor: isFloor(name),
      value: name === entry.floor ? 1 : figureOf(entry, name, key)?.ratio?.med,
    }));
    const drawn = found.filter(({ value }) => value > 0);
    return drawn.length > 1 ? [{ label, dots: drawn }] : [];
  });
  if (rows.length === 0) return undefined;
  return dots({
    title: "Throughput, as a share of the floor",
    subtitle: "Median of the ratios of each repeat. More is better; who is not drawn did none.",
    x: { label: "× floor", scale: "log", mark: 1 },
    rows,
  });
}

/** The middle one of what the repeats say at each share. */
function curveOf(curves) {
  const points = SHARES.map((share, i) => [
    share,
    median(curves.map((values) => values[i]).filter(Number.isFinite)),
  ]);
  return points
    .filter(([share, value]) => share < 1 && value > 0)
    .map(([share, value]) => [1 / (1 - share), value]);
}

function latency(results, isFloor, [, id, variant, title]) {
  const entry = entryOf(results, id, variant);
  const series = Object.entries(entry?.peers ?? {}).flatMap(([name, { curve }]) => {
    const points = curve ? curveOf(curve) : [];
    return points.length > 1 ? [{ name, isFloor: isFloor(name), points }] : [];
  });
  if (series.length === 0) return undefined;
  return lines({
    title,
    subtitle: "Below this time lies this share of all hand-overs to another waiter. Less is better.",
    x: {
      label: "percentile",
      scale: "log",
      ticks: PERCENTILES.map((share) => [1 / (1 - share), `${Number((100 * share).toFixed(1))}`]),
    },
    y: { label: "ms (log)", scale: "log" },
    series,
  });
}

function idle(results, isFloor) {
  const rows = results.scenarios
    .filter(({ id }) => id === "idle-waiters")
    .flatMap((entry) =>
      Object.keys(entry.peers).flatMap((name) => {
        const value = figureOf(entry, name, "sentRate")?.med;
        if (!Number.isFinite(value)) return [];
        const waiters = entry.variant.split(" waiters")[0];
        return [{ label: `${name}, ${waiters}`, dots: [{ name, isFloor: isFloor(name), value }] }];
      }),
    );
  if (rows.length === 0) return undefined;
  return dots({
    title: "Commands while waiters are idle",
    subtitle: "Sent in a second by all waiters of one process while another one holds. Less is better.",
    x: { label: "commands / s (log above 1)", scale: "count" },
    rows,
  });
}

function growth(results, isFloor, [, id, key, title, xLabel, yLabel, scale]) {
  const entries = results.scenarios.filter((entry) => entry.id === id && entry.x !== undefined);
  const names = [...new Set(entries.flatMap(({ peers }) => Object.keys(peers)))];
  const series = names.flatMap((name) => {
    const points = entries
      .map((entry) => [entry.x, figureOf(entry, name, key)?.med])
      .filter(([, value]) => value > 0);
    return points.length > 1 ? [{ name, isFloor: isFloor(name), points }] : [];
  });
  if (series.length === 0) return undefined;
  const exponents = (results.fits ?? [])
    .filter((fit) => fit.id === id && fit.figure === key)
    .map(({ peer, exponent }) => `${peer} ~ x^${exponent.toFixed(2)}`);
  const sizes = [...new Set(entries.map(({ x }) => x))];
  return lines({
    title,
    subtitle: exponents.join(", "),
    x: { label: `${xLabel} (log)`, scale: "log", ticks: sizes.map((size) => [size, String(size)]) },
    y: { label: scale === "log" ? `${yLabel} (log)` : yLabel, scale },
    series,
  });
}

/** `{ "name.svg": text }` */
export function plotsOf(results) {
  const isFloor = (name) => results.floors.includes(name);
  const all = [
    ["throughput", throughput(results, isFloor)],
    ...LATENCIES.map((plot) => [plot[0], latency(results, isFloor, plot)]),
    ["idle-commands", idle(results, isFloor)],
    ...GROWTHS.map((plot) => [plot[0], growth(results, isFloor, plot)]),
  ];
  return Object.fromEntries(
    all.filter(([, svg]) => svg !== undefined).map(([name, svg]) => [`${name}.svg`, svg]),
  );
}
