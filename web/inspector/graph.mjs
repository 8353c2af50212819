// Who waits for whom. An arrow leads from a lock to another that its holder waits for: round in a circle, nobody ever goes on.
import { $, h } from "./dom.mjs";
import { colourOf, locks, nameOf } from "./store.mjs";

const MOST = 60;
const WIDTH = 190;
const HEIGHT = 46;
const GAP_X = 70;
const GAP_Y = 16;

export function drawGraph() {
  const { nodes, edges } = graphOf();
  const cycles = cyclesOf(nodes, edges);
  const told = $("cycles");
  told.toggleAttribute("data-found", cycles.length > 0);
  told.textContent =
    cycles.length > 0
      ? cycles.map(textOf).join(" ")
      : nodes.size === 0
        ? "Nobody waits."
        : "No dead-lock, as far as is known.";
  $("drawing").hidden = nodes.size === 0;
  const inCycle = new Set(
    cycles.flatMap((cycle) => cycle.map((key, i) => `${key}\n${cycle[(i + 1) % cycle.length]}`)),
  );
  $("drawing").replaceChildren(picture(nodes, edges, inCycle, new Set(cycles.flat())));
}

function textOf(cycle) {
  const names = cycle.map((key) => `“${key.slice(1)}”`);
  const [first] = names;
  const circle =
    names.length === 1 ? `the holder of ${first} waits for it` : [...names, first].join(" waits for ");
  const taken = cycle.flatMap((key, i) => callSitesOf(locks.get(key.slice(1)), `${names[i]} was taken`));
  return `${[`Dead-lock: ${circle}`, ...taken].join("; ")}.`;
}

/** Where each of its holders took it, of those that tell. */
function callSitesOf(info, what) {
  return (info?.holders ?? []).flatMap(({ callSite }) => (callSite ? `${what} at ${callSite}` : []));
}

/** Nodes: locks ("L" and the name), and processes that wait and hold nothing ("P" and their name). */
function graphOf() {
  const nodes = new Map();
  const edges = new Map();
  const crowded = [...locks.values()].filter(({ waiting }) => waiting.length > 0);
  crowded.sort((a, b) => b.waiting.length - a.waiting.length);
  const addLock = (name) => {
    const info = locks.get(name);
    const [first, ...others] = info?.holders ?? [];
    const holder = first
      ? nameOf(first) + (others.length > 0 ? ` and ${others.length} more` : "")
      : "free by now";
    const hint = [name, ...callSitesOf(info, "taken")].join("\n");
    nodes.set(`L${name}`, { title: name, hint, sub: holder, waiting: info?.waiting.length ?? 0 });
  };
  for (const info of crowded.slice(0, MOST)) {
    const to = `L${info.name}`;
    addLock(info.name);
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

/** Each dead-lock once, as the keys along it. */
function cyclesOf(nodes, edges) {
  const next = new Map([...nodes.keys()].map((key) => [key, []]));
  for (const { from, to } of edges) next.get(from).push(to);
  const state = new Map();
  const cycles = [];
  const path = [];
  const visit = (key) => {
    state.set(key, "open");
    path.push(key);
    for (const to of next.get(key)) {
      if (state.get(to) === "open") cycles.push(path.slice(path.indexOf(to)));
      else if (!state.has(to)) visit(to);
    }
    path.pop();
    state.set(key, "done");
  };
  for (const key of nodes.keys()) if (!state.has(key)) visit(key);
  return cycles;
}

/** The column of each node: behind all that wait for it, as far as there is no circle. */
function columnsOf(nodes, edges) {
  const column = new Map([...nodes.keys()].map((key) => [key, 0]));
  for (let round = 0; round < Math.min(nodes.size, 8); round++) {
    for (const { from, to } of edges) {
      if (column.get(to) <= column.get(from) && column.get(from) < 7) column.set(to, column.get(from) + 1);
    }
  }
  return column;
}

function picture(nodes, edges, inCycle, cyclic) {
  const used = [];
  const column = columnsOf(nodes, edges);
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
  const back = to.x <= from.x;
  const [x1, y1, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.y + HEIGHT / 2];
  const x2 = back ? to.x + WIDTH + 7 : to.x - 7;
  const bend = GAP_X * 0.7;
  const curve = `M${x1} ${y1}C${x1 + bend} ${y1} ${back ? x2 + bend : x2 - bend} ${y2} ${x2} ${y2}`;
  const tip = back ? `M${x2 - 7} ${y2}l8 -4v8z` : `M${x2 + 7} ${y2}l-8 -4v8z`;
  const parts = [h("path", { class: `edge${mark}`, d: curve }), h("path", { class: `tip${mark}`, d: tip })];
  if (count > 1) parts.push(h("text", { class: "axis", x: x1 + 6, y: y1 - 5 }, `×${count}`));
  return parts;
}

function boxOf({ x, y, title, hint = title, sub, waiting, colour }, mark) {
  const shape = { x, y, width: WIDTH, height: HEIGHT, rx: colour ? HEIGHT / 2 : 8 };
  return h(
    "g",
    {},
    h("title", {}, hint),
    h("rect", { ...shape, class: colour ? `pill ${colour}` : `box${mark}` }),
    h("text", { class: "strong", x: x + 14, y: y + 19 }, cut(title)),
    h(
      "text",
      { class: "axis", x: x + 14, y: y + 35 },
      cut(waiting === undefined ? sub : `${sub} · ${waiting} waiting`, 28),
    ),
  );
}

function cut(text, length = 22) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
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
