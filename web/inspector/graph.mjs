// Who waits for whom. An arrow leads from a lock to another that its holder waits for: round in a circle, nobody ever goes on.
import { circlesOf, numbersOf } from "../../src/entries/inspector/shown.ts";
import { $, cut, h } from "./dom.mjs";
import { colourOf, locks, nameOf } from "./store.mjs";

const MOST = 60;
const WIDTH = 190;
const HEIGHT = 46;
const GAP_X = 70;
const GAP_Y = 16;

export function drawGraph() {
  const circles = circlesOf([...locks.values()]);
  const { nodes, edges } = graphOf(circles);
  const told = $("cycles");
  told.toggleAttribute("data-found", circles.length > 0);
  told.textContent =
    circles.length > 0
      ? circles.map(textOf).join(" ")
      : nodes.size === 0
        ? "Nobody waits."
        : "No dead-lock, as far as known.";
  const drawing = $("drawing");
  drawing.hidden = nodes.size === 0;
  drawing.replaceChildren(picture(nodes, edges, circles));
  $("goes-on").hidden = drawing.scrollWidth <= drawing.clientWidth;
}

/** The names of the locks that are in a dead-lock. */
export function deadlocked() {
  return new Set(circlesOf([...locks.values()]).flatMap((circle) => circle.map(({ held }) => held)));
}

function textOf(circle) {
  const names = circle.map(({ held }) => `“${held}”`);
  const [first] = names;
  const round =
    names.length === 1 ? `the holder of ${first} waits for it` : [...names, first].join(" waits for ");
  return `Dead-lock: ${round}.`;
}

/** Nodes: locks ("L" and the name), and processes that wait and hold nothing ("P" and their name). Circles come first. */
function graphOf(circles) {
  const nodes = new Map();
  const edges = new Map();
  const crowded = [...locks.values()].filter(({ waiting }) => waiting.length > 0);
  crowded.sort((a, b) => b.waiting.length - a.waiting.length);
  const addLock = (name) => {
    const info = locks.get(name);
    const [first, ...others] = info?.holders ?? [];
    const holder = first
      ? nameOf(first) + (others.length > 0 ? ` and ${others.length} more` : "")
      : (info && numbersOf(info)) || "free by now";
    nodes.set(`L${name}`, { title: name, sub: holder, waiting: info?.waiting.length ?? 0 });
  };
  const inCircles = circles.flat().map(({ held }) => held);
  for (const name of inCircles) addLock(name);
  const others = crowded.filter(({ name }) => !inCircles.includes(name));
  for (const info of [...inCircles.map((name) => locks.get(name)), ...others].slice(0, MOST)) {
    const to = `L${info.name}`;
    if (!nodes.has(to)) addLock(info.name);
    for (const waiter of info.waiting) {
      for (const name of waiter.holds) {
        if (!nodes.has(`L${name}`)) addLock(name);
        edges.set(`L${name}\n${to}`, { from: `L${name}`, to, count: 1 });
      }
      if (waiter.holds.length > 0) continue;
      const from = `P${nameOf(waiter)}`;
      if (!nodes.has(from)) nodes.set(from, { title: from.slice(1), sub: "waits", colour: colourOf(waiter) });
      const key = `${from}\n${to}`;
      edges.set(key, { from, to, count: (edges.get(key)?.count ?? 0) + 1 });
    }
  }
  return { nodes, edges: [...edges.values()] };
}

/**
 * The column of each node. A circle stands in the first one, from above to below in its order, and what leads into it the
 * nearer the sooner; all others stand behind what waits for them.
 */
function columnsOf(nodes, edges, cyclic) {
  const column = new Map([...cyclic].map((key) => [key, 0]));
  // A map goes on with what is added to it.
  for (const [near, at] of column) {
    for (const { from, to } of edges) if (to === near && !column.has(from)) column.set(from, at + 1);
  }
  const others = edges.filter(({ from }) => !column.has(from));
  for (const key of nodes.keys()) if (!column.has(key)) column.set(key, 0);
  for (let round = 0; round < Math.min(nodes.size, 8); round++) {
    for (const { from, to } of others) {
      if (column.get(to) <= column.get(from) && column.get(from) < 7) column.set(to, column.get(from) + 1);
    }
  }
  return column;
}

function picture(nodes, edges, circles) {
  const cyclic = new Set(circles.flat().map(({ held }) => `L${held}`));
  const inCycle = new Set(circles.flat().map(({ held, wanted }) => `L${held}\nL${wanted}`));
  const used = [];
  const column = columnsOf(nodes, edges, cyclic);
  for (const [key, node] of nodes) {
    const at = column.get(key);
    used[at] = (used[at] ?? 0) + 1;
    Object.assign(node, { x: 4 + at * (WIDTH + GAP_X), y: 4 + (used[at] - 1) * (HEIGHT + GAP_Y) });
  }
  const width = (Math.max(0, ...column.values()) + 1) * (WIDTH + GAP_X);
  const height = Math.max(1, ...used.filter(Boolean)) * (HEIGHT + GAP_Y) + 8;
  const svg = h("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": describe(nodes, edges),
  });
  for (const { from, to, count } of edges) {
    const mark = inCycle.has(`${from}\n${to}`) ? " cycle" : "";
    svg.append(...arrow(nodes.get(from), nodes.get(to), count, mark));
  }
  for (const [key, node] of nodes) svg.append(boxOf(node, cyclic.has(key) ? " cycle" : ""));
  return svg;
}

function arrow(from, to, count, mark) {
  // In a column the arrow turns round on the right; to the left it begins on the left.
  const back = to.x <= from.x;
  const x1 = to.x < from.x ? from.x : from.x + WIDTH;
  const x2 = back ? to.x + WIDTH + 7 : to.x - 7;
  const [y1, y2] = [from.y + HEIGHT / 2, to.y + HEIGHT / 2];
  const bend = GAP_X * 0.7;
  const [out, into] = [to.x < from.x ? -bend : bend, back ? bend : -bend];
  const curve = `M${x1} ${y1}C${x1 + out} ${y1} ${x2 + into} ${y2} ${x2} ${y2}`;
  const tip = back ? `M${x2 - 7} ${y2}l8 -4v8z` : `M${x2 + 7} ${y2}l-8 -4v8z`;
  const parts = [h("path", { class: `edge${mark}`, d: curve }), h("path", { class: `tip${mark}`, d: tip })];
  if (count > 1)
    parts.push(h("text", { class: "axis", x: x1 + (out < 0 ? -22 : 6), y: y1 - 5 }, `×${count}`));
  return parts;
}

function boxOf({ x, y, title, sub, waiting, colour }, mark) {
  const shape = { x, y, width: WIDTH, height: HEIGHT, rx: colour ? HEIGHT / 2 : 8 };
  return h(
    "g",
    {},
    h("title", {}, title),
    h("rect", { ...shape, class: colour ? `pill ${colour}` : `box${mark}` }),
    h("text", { class: "strong", x: x + 14, y: y + 19 }, cut(title, 22)),
    h(
      "text",
      { class: "axis", x: x + 14, y: y + 35 },
      cut(waiting === undefined ? sub : `${sub} · ${waiting} waiting`, 28),
    ),
  );
}

/** The same for those who do not see it. */
function describe(nodes, edges) {
  const title = (key) => nodes.get(key).title;
  const lines = edges.slice(0, 20).map(({ from, to }) => {
    return from.startsWith("P")
      ? `${title(from)} waits for ${title(to)}`
      : `the holder of ${title(from)} waits for ${title(to)}`;
  });
  return lines.length > 0 ? lines.join("; ") : "Nobody waits.";
}
