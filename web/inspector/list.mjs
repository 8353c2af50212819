// The list of locks: only the rows in sight exist, so that ten thousand locks scroll like ten.
import { numbersOf } from "../../src/entries/inspector/shown.ts";
import { $, h, seconds, setText } from "./dom.mjs";
import { deadlocked } from "./graph.mjs";
import { connection, locks, nameOf, now } from "./store.mjs";

const AROUND = 6;
const narrow = matchMedia("(max-width: 720px)");
/** Of the end of a long name, which stays in sight. */
const TAIL = 12;
const { compare } = new Intl.Collator("en", { numeric: true });
const ORDERS = {
  name: (a, b) => compare(a.name, b.name) || (a.name < b.name ? -1 : 1),
  waiting: (a, b) => b.waiting.length - a.waiting.length || ORDERS.name(a, b),
  since: (a, b) => (a.since ?? Infinity) - (b.since ?? Infinity) || ORDERS.name(a, b),
};

const list = $("list");
const pool = [];
let shown = [];
let stuck = new Set();
let active;
let choose = () => {};

/** `chosen(name)`: a lock is to be shown; null: none. */
export function openList(chosen) {
  choose = chosen;
  list.addEventListener("scroll", drawRows, { passive: true });
  list.addEventListener("keydown", onKey);
  list.addEventListener("click", ({ target }) => {
    const name = target.closest(".row")?.dataset.name;
    if (name !== undefined) select(name);
  });
  $("search").addEventListener("input", () => {
    list.scrollTop = 0;
    drawList();
  });
  $("search").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" || shown.length === 0) return;
    event.preventDefault();
    list.focus();
    move(0);
  });
  $("order").addEventListener("change", drawList);
  narrow.addEventListener("change", drawRows);
  new ResizeObserver(drawRows).observe(list);
}

function select(name) {
  active = name;
  drawRows();
  choose(name);
}

export function drawList() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  shown = [...locks.values()].filter((info) => words.every((word) => info.words.includes(word)));
  shown.sort(ORDERS[$("order").value]);
  stuck = deadlocked();
  list.hidden = shown.length === 0;
  $("empty").hidden = shown.length > 0 && !connection.truncated;
  setText($("empty"), emptyText());
  drawRows();
}

function emptyText() {
  if (connection.truncated) return `There are more locks than these ${connection.total}.`;
  if (connection.state === "wait") return "";
  return locks.size === 0 ? "No lock is held." : "Nothing matches the search.";
}

export function drawRows() {
  if (list.hidden) return;
  const height = narrow.matches ? 58 : 44;
  const first = Math.max(0, Math.floor(list.scrollTop / height) - AROUND);
  const count = Math.min(shown.length - first, Math.ceil(list.clientHeight / height) + 2 * AROUND);
  $("rows").style.height = `${shown.length * height}px`;
  while (pool.length < count) {
    pool.push(newRow());
    $("rows").append(pool.at(-1).row);
  }
  for (const [i, parts] of pool.entries()) {
    parts.row.hidden = i >= count;
    if (i < count) drawRow(parts, shown[first + i], first + i, height);
  }
  const at = shown.findIndex(({ name }) => name === active);
  if (at >= first && at < first + count) list.setAttribute("aria-activedescendant", pool[at - first].row.id);
  else list.removeAttribute("aria-activedescendant");
}

function newRow() {
  const parts = {
    head: h("span"),
    tail: h("span"),
    kind: h("span", { class: "kind" }),
    short: h("span", { class: "short" }),
    holder: h("span"),
    since: h("span", { class: "number" }),
    end: h("span", { class: "number" }),
    waiting: h("span", { class: "number" }),
  };
  const { head, tail, kind, short, holder, since, end, waiting } = parts;
  const title = h(
    "div",
    {},
    h("div", { class: "title" }, h("span", { class: "name" }, head, tail), kind),
    short,
  );
  const id = `row-${pool.length}`;
  return {
    ...parts,
    row: h("div", { class: "row", role: "option", id }, title, holder, since, end, waiting),
  };
}

function drawRow({ row, ...parts }, info, index, height) {
  row.style.transform = `translateY(${index * height}px)`;
  row.dataset.name = info.name;
  row.setAttribute("aria-setsize", shown.length);
  row.setAttribute("aria-posinset", index + 1);
  row.setAttribute("aria-selected", info.name === active);
  const holders = holdersOf(info);
  const { name } = info;
  const at = name.length > 2 * TAIL ? name.length - TAIL : name.length;
  setText(parts.head, name.slice(0, at));
  setText(parts.tail, name.slice(at));
  row.title = name;
  setText(parts.kind, stuck.has(name) ? `${kindOf(info)} · dead-lock` : kindOf(info));
  row.classList.toggle("stuck", stuck.has(name));
  setText(parts.short, holders);
  setText(parts.holder, holders);
  setText(
    parts.since,
    info.since === null ? (info.holders.length > 0 ? "?" : "–") : seconds(now() - info.since),
  );
  parts.since.title = info.since === null && info.holders.length > 0 ? UNTOLD : "";
  setText(parts.end, info.ttl < 0 ? "–" : seconds(Math.max(0, info.end - now())));
  setText(parts.waiting, info.waiting.length === 0 ? "–" : String(info.waiting.length));
  parts.waiting.classList.toggle("many", info.waiting.length > 0);
}

/** Why nobody knows since when. */
export const UNTOLD =
  "The holder's process reports since when, after a second or two. Java does not, nor does a process without presence.";

export function kindOf({ kind, mode }) {
  return mode ? `${kind} · ${mode}` : kind;
}

function holdersOf(info) {
  const { holders } = info;
  const [first] = holders;
  if (!first) return numbersOf(info) || "–";
  return holders.length === 1 ? nameOf(first) : `${nameOf(first)} and ${holders.length - 1} more`;
}

function onKey(event) {
  const at = shown.findIndex(({ name }) => name === active);
  const page = Math.max(1, Math.floor(list.clientHeight / 44) - 1);
  const steps = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0 };
  const to = event.key === "End" ? shown.length - 1 : steps[event.key];
  if (to !== undefined) {
    event.preventDefault();
    move(to);
  } else if (event.key === "Enter" && active !== undefined) {
    choose(active);
    $("detail-name").focus();
  }
}

function move(to) {
  const index = Math.min(Math.max(to, 0), shown.length - 1);
  const height = narrow.matches ? 58 : 44;
  const top = index * height;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + height > list.scrollTop + list.clientHeight)
    list.scrollTop = top + height - list.clientHeight;
  if (narrow.matches) {
    active = shown[index].name;
    drawRows();
  } else select(shown[index].name);
}
