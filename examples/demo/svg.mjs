// The timeline as a picture: all steps on one axis, a lane for each clerk. Needs no library, and can be read on a light
// and on a dark page.
import { MARKS, STATES } from "./timeline.mjs";

const WIDTH = 1200;
const LEFT = 70;
const RIGHT = WIDTH - 20;
const LEGEND = 64;
const TOP = 128;
const LANE = 30;
const LANE_STEP = 42;
const ROW = 24;

/** Selectors and declarations, for a light page and a dark one. A dead colour of old viewers is the light one. */
const LIGHT = `
  svg { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px }
  .page { fill: #ffffff } text { fill: #1f2937 } .faint { fill: #6b7280 } .band { fill: #f3f4f6 }
  .tick { stroke: #d1d5db } .h1 { font-size: 20px; font-weight: 600 } .b { font-weight: 600 }
  .holds { fill: #0d9488 } .nested { fill: #1e40af } .waits { fill: #f5b94a } .no-lock { fill: url(#hatch) }
  .hatch { fill: #fecaca } .hatch-line { stroke: #dc2626 }
  .lapsing { fill: none; stroke: #dc2626; stroke-dasharray: 4 3 }
  .renewed { stroke: #ffffff; stroke-width: 2 } .legend-renewed { stroke: #0d9488; stroke-width: 2 }
  .killed, .lost { stroke: #dc2626; stroke-width: 3.5 } .gave-up { stroke: #b45309; stroke-width: 3 }
  .good { fill: #15803d; font-weight: 700 } .bad { fill: #dc2626; font-weight: 700 }`;
const DARK = `
  .page { fill: #0f172a } text { fill: #e5e7eb } .faint { fill: #9ca3af } .band { fill: #1e293b }
  .tick { stroke: #475569 } .holds { fill: #2dd4bf } .nested { fill: #60a5fa } .waits { fill: #b7791f }
  .hatch { fill: #7f1d1d } .hatch-line { stroke: #f87171 } .lapsing, .killed, .lost { stroke: #f87171 }
  .renewed { stroke: #0f172a } .legend-renewed { stroke: #2dd4bf } .gave-up { stroke: #fbbf24 }
  .good { fill: #4ade80 } .bad { fill: #f87171 }`;

/** The whole file as text. */
export function drawSvg({ lanes, steps }) {
  const start = steps[0].from;
  const end = steps.at(-1).to;
  const x = (at) => LEFT + ((Math.min(at, end) - start) / (end - start)) * (RIGHT - LEFT);
  const bottom = TOP + lanes.length * LANE_STEP;
  const height = bottom + 66 + steps.length * ROW;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title what">`,
    `<title id="title">holdfast demo: who held the lock, and who waited</title>`,
    `<desc id="what">${steps.map(({ title, lines }) => escapeXml(`${title}: ${lines[0]}.`)).join(" ")}</desc>`,
    `<style>${LIGHT}\n  @media (prefers-color-scheme: dark) {${DARK}\n  }\n</style>`,
    `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`,
    `<rect class="hatch" width="6" height="6"/><line class="hatch-line" y2="6" stroke-width="5"/></pattern></defs>`,
    `<rect class="page" width="${WIDTH}" height="${height}" rx="8"/>`,
    `<text class="h1" x="20" y="36">One account book, ${lanes.length} processes, one lock</text>`,
    ...legend(),
    ...steps.flatMap((step) => band(step, x, bottom)),
    ...axis(start, end, x, bottom),
    ...lanes.flatMap((lane, i) => drawLane(lane, TOP + i * LANE_STEP, x, end)),
    ...steps.flatMap((step, i) => outcome(step, bottom + 66 + i * ROW)),
    "</svg>",
    "",
  ].join("\n");
}

function legend() {
  const parts = [];
  let left = 20;
  for (const [kind, text] of [...Object.entries(STATES), ...Object.entries(MARKS)]) {
    if (kind === "lost") continue;
    const sample =
      kind in STATES ? bar(kind, left, left + 18, LEGEND - 6, 20) : mark(kind, left + 9, LEGEND + 4, 14);
    parts.push(sample.replace(`class="renewed"`, `class="legend-renewed"`));
    parts.push(`<text x="${left + 24}" y="${LEGEND + 9}">${text}</text>`);
    left += 38 + text.length * 7.3;
  }
  return parts;
}

/** The ground on which a step stands, and its name. */
function band({ number, short, from, to }, x, bottom) {
  const left = x(from);
  return [
    rect("band", left, x(to), TOP - 6, bottom - TOP + 2, 4),
    `<text x="${fixed(left + 2)}" y="${TOP - 14}"><tspan class="b">${number}</tspan> ${escapeXml(short)}</text>`,
  ];
}

function axis(start, end, x, bottom) {
  const marks = [];
  for (let s = 0; s * 1_000 <= end - start; s += 1) {
    const at = fixed(x(start + s * 1_000));
    marks.push(`<line class="tick" x1="${at}" x2="${at}" y1="${TOP - 6}" y2="${bottom + 4}"/>`);
    marks.push(`<text class="faint" x="${at}" y="${bottom + 20}" text-anchor="middle">${s} s</text>`);
  }
  return marks;
}

function drawLane({ name, spans, marks }, top, x, end) {
  return [
    `<g class="lane" id="lane-${name.toLowerCase()}">`,
    `<text class="b" x="20" y="${top + LANE / 2 + 5}">${name}</text>`,
    ...spans.map(({ state, from, to = end }) => bar(state, x(from), x(to), top, LANE)),
    ...marks.map((entry) => mark(entry.mark, x(entry.at), top + LANE / 2, LANE)),
    "</g>",
  ];
}

/** Waiting is a thin line, so that the eye finds those who hold. */
function bar(state, left, right, top, height) {
  const thin = state === "waits" ? height / 3 : 0;
  return rect(state, left, right, top + thin, height - 2 * thin, 0);
}

function mark(kind, x, y, size) {
  const r = kind === "renewed" ? size / 2 : Math.min(9, size / 2);
  const lines = {
    renewed: `M${fixed(x)} ${y - r}v${2 * r}`,
    "gave-up": `M${fixed(x)} ${y - r}v${2 * r}M${fixed(x - 5)} ${y - r}h10M${fixed(x - 5)} ${y + r}h10`,
  };
  const cross = `M${fixed(x - r)} ${y - r}l${2 * r} ${2 * r}M${fixed(x - r)} ${y + r}l${2 * r} ${-2 * r}`;
  return `<path class="${kind}" fill="none" d="${lines[kind] ?? cross}"/>`;
}

function outcome({ number, title, ok, lines }, y) {
  const sign = ok ? `<tspan class="good">✓</tspan>` : `<tspan class="bad">✗</tspan>`;
  return [
    `<text x="20" y="${y}">${sign} <tspan class="b">${number}</tspan> ${escapeXml(title)}</text>`,
    `<text class="faint" x="520" y="${y}">${escapeXml(lines[0])}</text>`,
  ];
}

function rect(kind, left, right, top, height, radius) {
  const width = Math.max(0.5, right - left);
  const round = radius ? ` rx="${radius}"` : "";
  return `<rect class="${kind}" x="${fixed(left)}" y="${top}" width="${fixed(width)}" height="${height}"${round}/>`;
}

function fixed(number) {
  return String(Math.round(number * 10) / 10);
}

function escapeXml(text) {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
