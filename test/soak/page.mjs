// The report of a soak as one HTML page with its styles and plots inside, in light and dark.
import { lines, PALETTE, spans } from "../../bench/lib/plot.mjs";

/** Colours of the groups of faults. */
const [NETWORK, MASTER, , PROCESS, SERVER] = PALETTE;
const COLOURS = { network: NETWORK, process: PROCESS, server: SERVER, master: MASTER };
/** Groups whose faults strike all clients at once: drawn behind the other plots. */
const STRIKES_ALL = ["server", "master"];
const LEFT = 150;
/** Most points of a line. */
const POINTS = 240;

const GREY = ["#6b7280", "#9ca3af"];
const [BLUE, , GREEN] = PALETTE;

const escaped = (text) =>
  String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const inSeconds = (ms) => ms / 1_000;
const whole = (value) =>
  value === undefined ? "–" : Math.round(value).toLocaleString("en").replaceAll(",", " ");

function table(head, rows) {
  const cells = (tag, row) => row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join("");
  const body = rows.map((row) => `<tr>${cells("td", row)}</tr>`).join("\n");
  return `<div class="wide"><table><thead><tr>${cells("th", head)}</tr></thead><tbody>${body}</tbody></table></div>`;
}

/** A plot as an image, so that its styles do not apply to other plots. */
function image(svg) {
  const title = /aria-label="([^"]*)"/.exec(svg)?.[1] ?? "";
  return `<img alt="${title}" src="data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}">`;
}

/** Joins neighbouring seconds if there are too many. An empty bucket stands between two rounds, where nothing runs. */
function buckets(series) {
  const step = 1_000 * Math.max(1, Math.ceil(series.length / POINTS));
  const found = [];
  for (const second of series) {
    const last = found.at(-1);
    if (last && second.at < last.at + step) last.seconds.push(second);
    else {
      if (last && second.at > last.at + step + 1_000) found.push({ at: last.at + step, seconds: [] });
      found.push({ at: second.at, seconds: [second] });
    }
  }
  return found;
}

function line(name, colours, series, of) {
  const points = buckets(series).map(({ at, seconds }) => [
    inSeconds(at),
    seconds.length === 0 ? null : of(seconds),
  ]);
  return { name, colours, isFloor: false, points };
}

function most(key) {
  return (seconds) =>
    seconds.reduce((found, { [key]: value }) => (value > (found ?? 0) ? value : found), null);
}

const mean = (seconds) => seconds.reduce((sum, { acquisitions }) => sum + acquisitions, 0) / seconds.length;

function plotsOf({ faults, series, scene }) {
  const drawn = faults.map(({ name, group, from, to }) => {
    const colours = COLOURS[group];
    return { row: name, name: group, colours, from: inSeconds(from), to: inSeconds(to) };
  });
  const bands = drawn.filter(({ name }) => STRIKES_ALL.includes(name));
  const end = Math.max(...series.map(({ at }) => inSeconds(at) + 1), ...drawn.map(({ to }) => to));
  const x = { label: "seconds since the start", scale: "linear", values: [end] };
  const common = { x, bands, left: LEFT, height: 220, isDotted: false };
  const rows = [...new Set(drawn.map(({ row }) => row))].sort((a, b) => groupOf(a).localeCompare(groupOf(b)));
  function groupOf(row) {
    return drawn.find((fault) => fault.row === row).name;
  }
  const plots = [
    lines({
      ...common,
      title: "Acquisitions",
      subtitle: "Granted in a second, by all processes together. Behind: faults of servers.",
      y: { label: "acquisitions / s", scale: "linear" },
      series: [line("acquisitions", BLUE, series, mean)],
    }),
    lines({
      ...common,
      title: "Waits",
      subtitle:
        "From the call to the grant, for those that were granted in that second. Behind: faults of servers.",
      y: { label: "ms (log)", scale: "log" },
      series: [
        line("longest", GREY, series, most("most")),
        line("99 %", GREEN, series, most("p99")),
        line("half", BLUE, series, most("p50")),
      ],
    }),
    spans({
      title: "Faults",
      subtitle: "From the first to the last moment of each.",
      x: { label: x.label, from: 0, to: end * 1.05 },
      left: LEFT,
      step: 22,
      rows: rows.map((row) => ({ label: row, spans: drawn.filter((fault) => fault.row === row) })),
    }),
  ];
  return scene ? [...plots, holders(scene, drawn)] : plots;
}

/** A plot of the holders over time: of each kind, the lock that was taken most often. */
function holders({ from, to, visits }, faults) {
  const byLock = new Map();
  for (const visit of visits) byLock.set(visit.lock, [...(byLock.get(visit.lock) ?? []), visit]);
  const busiest = new Map();
  for (const [lock, mine] of byLock) {
    const { kind } = mine[0];
    if (mine.length > (byLock.get(busiest.get(kind))?.length ?? 0)) busiest.set(kind, lock);
  }
  const processes = [...new Set(visits.map(({ process }) => process))].sort();
  const colours = (process) => PALETTE[processes.indexOf(process) % PALETTE.length];
  const rows = [...busiest.values()].sort().map((lock) => ({
    label: lock,
    spans: byLock.get(lock).map((visit) => ({
      name: visit.process,
      colours: colours(visit.process),
      from: inSeconds(visit.from),
      to: inSeconds(visit.to),
    })),
  }));
  const [begin, end] = [inSeconds(from), inSeconds(to)];
  return spans({
    title: "Holders, about the longest fault of servers",
    subtitle:
      "Who was inside the busiest lock of each kind. Bars above each other were inside together: readers, permits.",
    x: { label: "seconds since the start", from: begin, to: end },
    left: LEFT,
    rows,
    bands: faults
      .filter((fault) => fault.to > begin && fault.from < end && STRIKES_ALL.includes(fault.name))
      .map((fault) => ({ ...fault, from: Math.max(begin, fault.from), to: Math.min(end, fault.to) })),
  });
}

const STYLE = `
:root{color-scheme:light dark;--back:#fff;--text:#1f2328;--muted:#59636e;--line:#d1d9e0;--good:#1a7f37;--bad:#cf222e}
@media (prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--muted:#9198a1;--line:#30363d;--good:#3fb950;--bad:#f85149}}
body{background:var(--back);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;margin:0 auto;max-width:960px;padding:24px 16px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:28px 0 8px}.muted{color:var(--muted)}
.verdict{font-weight:600}.good{color:var(--good)}.bad{color:var(--bad)}
code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:4px 16px 4px 0;text-align:left}td+td,th+th{text-align:right}
.left td+td,.left th+th{text-align:left}
img{display:block;width:100%;height:auto;margin:8px 0 20px}ul{padding-left:20px}`;

function wrongs({ violations, errors }) {
  if (violations.length + errors.length === 0) return "";
  const rows = violations.slice(0, 200).map(({ round, kind, lock, detail }) => [round, kind, lock, detail]);
  const list = errors.slice(0, 50).map((error) => `<li><code>${escaped(error)}</code></li>`);
  return `<h2>What went wrong</h2><div class="left">${table(["round", "what", "lock", "detail"], rows)}</div><ul>${list.join("")}</ul>`;
}

/** @param {import("./report.js").Report} report */
export function pageOf(report) {
  const { passed, topology, summary, command, machine, date, kinds, faultCounts, bound, slack } = report;
  const verdict = passed
    ? `<span class="verdict good">passed</span>`
    : `<span class="verdict bad">failed</span>`;
  const load = machine.load.map((value) => value.toFixed(1)).join(" at the start, ");
  const faults = Object.entries(faultCounts).sort(([, a], [, b]) => b - a);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Soak: ${escaped(topology)}, ${passed ? "passed" : "failed"}</title><style>${STYLE}</style></head><body>
<h1>Soak: ${escaped(topology)}, ${verdict}</h1>
<p>${escaped(summary[0])}; ${escaped(summary[1])}.</p>
<p class="muted">${escaped(date)}, Node ${escaped(machine.node)}, ${machine.cores} cores, load ${load} in the end.<br><code>${escaped(command)}</code></p>
${wrongs(report)}
<h2>Over time</h2>
${plotsOf(report).map(image).join("\n")}
<h2>By kind</h2>
<p class="muted">A wait is the time from a call to its grant. A stall is the part of it in which the lock was free and no fault was under way: at most ${whole(bound)} ms, and ${whole(slack)} ms more for a machine that was so slow. A multi waits for one of its members at a time, so only dead-locks are looked for.</p>
${table(
  ["", "acquisitions", "longest wait, ms", "longest stall, ms"],
  kinds.map((kind) => [
    kind.kind,
    whole(kind.acquisitions),
    whole(kind.longestWait),
    whole(kind.longestStall),
  ]),
)}
<h2>Faults</h2>
${table(
  ["", "injected"],
  faults.map(([name, count]) => [name, whole(count)]),
)}
</body></html>
`;
}
