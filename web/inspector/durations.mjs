// How long locks were waited for and held, of all entries of the history.
import { $, duration, h } from "./dom.mjs";
import { entries } from "./store.mjs";

const BOUNDS = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 60_000, 300_000, Infinity];

export function drawDurations() {
  draw(
    $("waits"),
    entries.filter(({ waited }) => waited !== undefined).map(({ waited }) => waited),
    "Wait",
  );
  draw(
    $("holds"),
    entries.filter(({ held }) => held !== undefined).map(({ held }) => held),
    "Hold",
  );
}

function draw(element, values, title) {
  if (values.length === 0) return element.replaceChildren(h("p", { class: "faint" }, "Nothing seen yet."));
  values.sort((a, b) => a - b);
  const counts = BOUNDS.map(
    (bound, i) => values.filter((ms) => ms < bound && ms >= (BOUNDS[i - 1] ?? 0)).length,
  );
  const most = Math.max(...counts);
  const rows = counts.map((count, i) => {
    const bar = h("i");
    bar.style.width = `${(count / most) * 100}%`;
    if (count === 0) bar.hidden = true;
    return h("tr", {}, h("th", { scope: "row" }, rangeOf(i)), h("td", {}, bar), h("td", {}, String(count)));
  });
  const at = (share) => duration(values[Math.min(values.length - 1, Math.floor(values.length * share))]);
  const summary = `${values.length} seen · half below ${at(0.5)} · 95 % below ${at(0.95)} · longest ${duration(values.at(-1))}`;
  const table = h(
    "table",
    { class: "histogram", "aria-label": `${title} by duration` },
    h("tbody", {}, ...rows),
  );
  element.replaceChildren(h("p", {}, summary), table);
}

function rangeOf(i) {
  if (BOUNDS[i] === Infinity) return `≥ ${plain(BOUNDS[i - 1])}`;
  return `< ${plain(BOUNDS[i])}`;
}

function plain(ms) {
  return ms < 1_000 ? `${ms} ms` : ms < 60_000 ? `${ms / 1_000} s` : `${ms / 60_000} min`;
}
