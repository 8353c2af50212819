// Who had which lock: a lane for each, from the entries of the history.
import { $, clock, cut, duration, h } from "./dom.mjs";
import { colourOf, entries, locks, nameOf, now } from "./store.mjs";

const SPAN = 120_000;
const LANE = 30;
const LANES = 14;
const LOGGED = 60;
const { compare } = new Intl.Collator("en", { numeric: true });
const WORDS = { granted: "got", released: "gave back", lost: "lost", unlocked: "was forced to unlock" };

/** The lanes of these locks, in the width of the element. `title`: the names of the lanes are shown. */
export function drawLanes(element, names, title) {
  const width = Math.max(280, element.clientWidth);
  const left = title ? Math.min(190, width / 3) : 0;
  const to = now();
  const x = (at) => left + ((at - (to - SPAN)) / SPAN) * (width - left);
  const height = names.length * LANE + 20;
  const label = `Holders over the last two minutes of ${names.length} locks`;
  const svg = h("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": label,
  });
  const marks = width - left < 340 ? [120, 60, 0] : [120, 90, 60, 30, 0];
  for (const ago of marks) {
    const at = x(to - ago * 1_000);
    const anchor = ago === 120 ? "start" : ago === 0 ? "end" : "middle";
    svg.append(
      h("line", { class: "rule", x1: at, x2: at, y1: 0, y2: height - 18 }),
      h(
        "text",
        { class: "axis", x: at, y: height - 4, "text-anchor": anchor },
        ago === 0 ? "now" : `−${ago} s`,
      ),
    );
  }
  for (const [i, name] of names.entries()) {
    const y = i * LANE;
    if (title)
      svg.append(h("text", { x: 0, y: y + 18 }, h("title", {}, name), cut(name, Math.floor(left / 7) - 2)));
    for (const span of spansOf(name, to)) {
      const from = Math.max(left, x(span.from));
      const end = x(span.to ?? to);
      if (end <= left) continue;
      const mark = `span ${colourOf(span)}${span.to ? "" : " open"}${span.torn ? " torn" : ""}`;
      const text = `${nameOf(span)}, ${duration((span.to ?? to) - span.from)}`;
      const box = {
        x: from,
        y: y + 4,
        width: Math.max(2, end - from),
        height: LANE - 10,
        rx: 3,
        class: mark,
      };
      svg.append(h("rect", box, h("title", {}, text)));
    }
  }
  element.replaceChildren(svg);
}

/** Holds by their grant, or by their end where the grant was not seen, or by the lock as it is now. */
function spansOf(name, to) {
  const spans = new Map();
  for (const entry of entries) {
    if (entry.name !== name) continue;
    const { at, what, ownerId, label, held, seen } = entry;
    if (what === "granted") spans.set(ownerId, { ownerId, label, from: at });
    else {
      // What nobody watched stays blank.
      const end = seen ?? at;
      const from = held === undefined ? end : at - held;
      spans.set(ownerId, { from, ...spans.get(ownerId), ownerId, label, to: end, torn: what !== "released" });
    }
  }
  for (const holder of locks.get(name)?.holders ?? []) {
    if (spans.has(holder.ownerId)) continue;
    const from = holder.since ? Date.parse(holder.since) : (locks.get(name).since ?? to - 1_000);
    spans.set(holder.ownerId, { ...holder, from });
  }
  return [...spans.values()];
}

/** The locks that are held or awaited longest; then those of which the newest entries tell. */
function liveliest() {
  const begun = (info) => {
    const waits = info.waiting.flatMap(({ since }) => (since ? Date.parse(since) : []));
    return Math.min(info.since ?? Infinity, ...waits);
  };
  const present = [...locks.values()].filter(({ holders }) => holders.length > 0);
  const ages = present.map((info) => [info.name, begun(info)]).sort(([, a], [, b]) => a - b);
  const names = new Set(ages.slice(0, LANES).map(([name]) => name));
  for (let i = entries.length - 1; i >= 0 && names.size < LANES; i--) names.add(entries[i].name);
  return [...names].sort(compare);
}

export function drawTimeline() {
  const names = liveliest();
  drawLanes($("lanes"), names, true);
  const parties = new Map();
  for (const entry of entries.slice(-500)) parties.set(nameOf(entry), entry);
  for (const name of names)
    for (const holder of locks.get(name)?.holders ?? []) parties.set(nameOf(holder), holder);
  const legend = [...parties].slice(-16).map(([name, party]) => h("span", { class: colourOf(party) }, name));
  $("legend").replaceChildren(...legend);
}

/** The newest entries first; of one lock, or of all. */
export function drawLog(element, name) {
  const lines = [];
  for (let i = entries.length - 1; i >= 0 && lines.length < LOGGED; i--) {
    if (name === undefined || entries[i].name === name) lines.push(logLine(entries[i], name === undefined));
  }
  element.replaceChildren(...(lines.length > 0 ? lines : [h("li", { class: "faint" }, "Nothing yet.")]));
}

function logLine(entry, withName) {
  const { at, what, name, waited, held, seen } = entry;
  const much = seen
    ? `between ${clock(seen)} and then, while nobody watched`
    : what === "granted"
      ? waited !== undefined && `after ${duration(waited)}`
      : held !== undefined && `after ${duration(held)}`;
  return h(
    "li",
    {},
    h("time", {}, clock(at)),
    h(
      "span",
      {},
      h("b", {}, nameOf(entry)),
      " ",
      h("span", { class: what }, WORDS[what]),
      withName ? ` ${name}` : "",
    ),
    h("span", { class: "faint" }, much || ""),
  );
}
