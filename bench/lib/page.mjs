// A run as a page: who, where, the main figures, goals, growth; and all the tables.
import { entryOf, figureOf, isPeer } from "./found.mjs";
import { goalRow, goalsOf, raceRow, racesOf } from "./goals.mjs";
import { violationsOf } from "./results.mjs";
import { median } from "./stats.mjs";
import { markdown, number, table } from "./tables.mjs";

/** `[scenario, variant, figure, label, isAbsolute]`: medians, or the median of the ratios to the floor. */
const HEADLINES = [
  ["serial", "", "ops", "serial: cycles/s"],
  ["serial", "", "cpuUs", "client CPU µs / cycle"],
  ["cold", "", "p50", "a cold service: cycle p50 ms"],
  ["cold", "", "cpuUs", "client CPU µs / cycle"],
  ["nested", "", "ops", "nested: cycles/s"],
  ["in-flight", "64 ", "ops", "64 in flight: cycles/s"],
  ["in-flight", "1024 ", "ops", "1 024 in flight: cycles/s"],
  ["hand-over", "16 waiters, loop", "handOvers", "16 waiters: hand-overs/s"],
  ["hand-over", "16 waiters, loop", "jain", "Jain's index over waiters", true],
  ["hand-over", "16 waiters, loop", "waitMax", "longest wait ms", true],
  ["hand-over", "128 waiters, loop", "handOvers", "128 waiters: hand-overs/s"],
  ["hand-over", "128 waiters, loop", "sentPer", "commands sent / take", true],
  ["hand-over", "16 waiters, bursts", "burstMs", "16 waiters, burst: ms to serve all"],
  ["hand-over", "16 waiters, bursts", "gapP50", "release → next p50 ms"],
  ["hand-over", "16 waiters, bursts", "sentPer", "commands sent / take", true],
  ["hand-over", "128 waiters, bursts", "burstMs", "128 waiters, burst: ms to serve all"],
  ["hand-over", "10 000 waiters", "gapP50", "10 000 waiters, burst: release → next p50 ms"],
  ["hand-over", "10 000 waiters", "sentPer", "commands sent / take", true],
  ["between-processes", "4 ", "handOvers", "4 processes × 8: hand-overs/s"],
  ["between-processes", "4 ", "gapP50", "release → next p50 ms"],
  ["between-processes", "4 ", "jain", "Jain's index over waiters", true],
  ["between-processes", "4 ", "sentPer", "commands sent / take", true],
  ["between-processes", "16 ", "handOvers", "16 processes × 2: hand-overs/s"],
  ["idle-waiters", "200 ", "sentRate", "200 idle waiters: commands sent/s", true],
  ["idle-waiters", "200 ", "first", "release → first ms"],
  ["idle-waiters", "200 ", "drain", "release → all served ms"],
  ["idle-waiters", "10 000 ", "sentRate", "10 000 idle waiters: commands sent/s", true],
  ["renewals", "1 000 ", "sentPer", "1 000 renewals: commands", true],
  ["renewals", "1 000 ", "cpuPer", "client CPU ms"],
  ["memory", "a hold with a lease", "heapPer", "memory: client heap B / hold"],
  ["memory", "a hold that is renewed", "heapPer", "client heap B / renewed hold"],
  ["memory", "a waiter", "heapPer", "client heap B / waiter"],
  ["memory", "a hold with a lease", "redisPer", "Redis memory B / hold"],
  ["redlock", "3 ", "p50", "3 masters: p50 ms"],
  ["redlock", "5 ", "p50", "5 masters: p50 ms"],
  ["redlock-contended", "", "takes", "3 masters, contended: takes/s"],
  ["redlock-contended", "", "waitMax", "longest wait ms", true],
  ["cold-start", "", "toGrant", "cold start: import → first lock ms"],
  ["bundle-size", "", "compressed", "bundle: minified and gzip kB", true],
];

const KINDS = [
  ["fairness", "4 ", "takes", "16, 8, 2 and 1 waiters: takes/s"],
  ["fairness", "4 ", "jainProcesses", "Jain's index over processes", true],
  ["fairness", "4 ", "jainShares", "the same, takes per waiter", true],
  ["fairness", "4 ", "waitMax", "longest wait ms", true],
  ["fairness", "8 ", "takes", "8 processes × 4: takes/s"],
  ["fairness", "8 ", "jainProcesses", "Jain's index over processes", true],
  ["fairness", "8 ", "waitMax", "longest wait ms", true],
  ["fair", "16 ", "handOvers", "fair, 16 waiters in one process: hand-overs/s"],
  ["fair", "4 ", "handOvers", "fair, 4 processes × 8: hand-overs/s"],
  ["fair", "4 ", "jain", "Jain's index over waiters", true],
  ["read-write", "16 ", "takes", "95 % reads, 16 tasks in one process: takes/s"],
  ["read-write", "4 ", "takes", "95 % reads, 4 processes × 8: takes/s"],
  ["multi-lock", "", "p50", "MultiLock of 8: p50 ms"],
];

function headlines(results, lines, names) {
  const shown = names.filter((name) =>
    lines.some(([id, variant, key]) => figureOf(entryOf(results, id, variant), name, key)?.n > 0),
  );
  const rows = lines.flatMap(([id, variant, key, label, isAbsolute = false]) => {
    const entry = entryOf(results, id, variant);
    if (!entry) return [];
    const cell = (name) => {
      const of = entry.peers[name];
      const figure = of?.metrics[key];
      if (!figure) return "";
      if (figure.n === 0) return of.errors.length > 0 ? "failed" : "–";
      if (isAbsolute || !figure.ratio) return number(figure.med);
      return `× ${number(figure.ratio.med)}`;
    };
    const floor = figureOf(entry, entry.floor, key);
    const beside = floor?.n > 0 ? `${number(floor.med)} (${entry.floor})` : "";
    return [[label.includes(":") ? label : `… ${label}`, beside, ...shown.map(cell)]];
  });
  return rows.length === 0 ? [] : [table(["", "floor", ...shown], rows)];
}

function about({ date, machine, versions, settings, tookS, load, skipped }) {
  const others = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const left = Object.entries(skipped).map(([name, why]) => ` Left out: ${name} (${why}).`);
  return `${date.slice(0, 10)}, ${machine}, load ${load[0].toFixed(1)} at the start. ${settings.repeats} repeats, ${settings.seconds} s of each scenario and peer, ${settings.pinned ? "pinned" : "not pinned"}, ${Math.round(tookS / 60)} minutes in all. ${others.join(", ")}.${left.join("")}`;
}

/** What is sent while nothing happens, by name. */
function idleNote(results) {
  return results.scenarios
    .filter(({ id }) => id === "idle-waiters")
    .flatMap((entry) => {
      const all = entry.peers.holdfast?.idleCommands ?? [];
      const names = [...new Set(all.flatMap((each) => Object.keys(each)))];
      const mean = (name) => all.reduce((total, each) => total + (each[name] ?? 0), 0) / all.length;
      const listed = names.map((name) => `${name} ${number(mean(name))}`);
      const label = entry.variant.split(",")[0];
      return [`Run in Redis each second for ${label}: ${listed.join(", ") || "nothing"}.`];
    })
    .join(" ");
}

function redissonTable({ redisson }) {
  if (!redisson) return [];
  if (redisson.missing) return [`Without Redisson: ${redisson.missing}`];
  const rows = redisson.rows.map(({ label, unit, digits, holdfast, Redisson, ratio }) => {
    const cell = (values) => `${median(values).toFixed(digits)}${unit}`;
    return [
      label,
      cell(holdfast),
      cell(Redisson),
      `${number(ratio.med)} [${number(ratio.min)}–${number(ratio.max)}]`,
    ];
  });
  const { versions } = redisson;
  return [
    `Redisson ${versions.Redisson} on JDK ${versions.jdk}. Below 1 is better for this library where milliseconds, commands or bytes are counted.`,
    table(["", "holdfast", "Redisson", "ratio"], rows),
  ];
}

function violations(results) {
  const found = violationsOf(results).map(
    ({ name, n, title, variant }) => `${name}: ${n} in ${title}, ${variant}`,
  );
  if (found.length === 0) return "Nobody was seen to be inside together with another.";
  return `**Violations of exclusion:** ${found.join("; ")}.`;
}

const caption = (name) => name.replace(".svg", "").replaceAll("-", " ");

/** The parts of a page, by the marker where they stand in README.md. */
export function partsOf(results, plots, folder) {
  const names = [...new Set(results.scenarios.flatMap(({ peers }) => Object.keys(peers)))];
  const ours = names.filter((name) => name.startsWith("holdfast"));
  const main = [
    ...ours.filter((name) => /^holdfast(@|$)/.test(name)),
    ...names.filter((name) => isPeer(results, name)),
  ];
  const goals = goalsOf(results).filter(({ value }) => value !== undefined);
  const races = racesOf(results);
  const fits = (results.fits ?? []).map(({ label, by, peer, exponent, r2 }) => [
    label,
    by,
    peer,
    exponent.toFixed(2),
    r2.toFixed(2),
  ]);
  const section = (title, ...texts) => (texts.length > 0 ? [title, ...texts] : []);
  return {
    figures: [
      about(results),
      violations(results),
      ...headlines(results, HEADLINES, main),
      ...section("Kinds of locks, and groups:", ...headlines(results, KINDS, ours)),
      idleNote(results),
    ],
    goals: [
      ...(goals.length > 0 ? [table(["", "goal", "measured", "reached"], goals.map(goalRow))] : []),
      ...(races.length > 0
        ? section(
            "Against the best peer of each figure:",
            table(["", "holdfast", "best peer", "ahead by", "goal", "reached"], races.map(raceRow)),
          )
        : []),
    ],
    growth: fits.length > 0 ? [table(["figure", "by", "", "exponent", "r²"], fits)] : [],
    plots: Object.keys(plots).map((name) => `![${caption(name)}](${folder}${name})`),
    redisson: redissonTable(results),
  };
}

/** A page of its own: everything. */
export function pageOf(results, plots) {
  const parts = partsOf(results, plots, "");
  const section = (title, lines) => (lines.length > 0 ? [`## ${title}`, ...lines] : []);
  const notes = Object.entries(results.notes).map(([name, note]) => [name, note]);
  return `${[
    "# What was measured",
    ...parts.figures,
    ...section("Goals", parts.goals),
    ...section("Plots", parts.plots),
    ...section("Growth", parts.growth),
    ...section("Redisson", parts.redisson),
    ...section("All tables", results.scenarios.map(markdown)),
    "## Who is who",
    table(["", "settings"], notes),
  ]
    .filter((line) => line !== "")
    .join("\n\n")}\n`;
}
