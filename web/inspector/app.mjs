// The page: views by the fragment of the URL, drawn when something has changed and while they are in sight.
import { drawDetail, openDetail, showDetail, toast } from "./detail.mjs";
import { $, h, setText } from "./dom.mjs";
import { drawDurations } from "./durations.mjs";
import { drawGraph } from "./graph.mjs";
import { drawList, drawRows, openList } from "./list.mjs";
import { connection, locks, open } from "./store.mjs";
import { drawLog, drawTimeline } from "./timeline.mjs";

const VIEWS = {
  locks: drawDetail,
  timeline: () => {
    drawTimeline();
    drawLog($("log"));
  },
  durations: drawDurations,
  graph: drawGraph,
};
const TICK = 1_000;

let chosen = null;
let pending = false;
let stale = true;

function view() {
  const name = location.hash.slice(1);
  return Object.hasOwn(VIEWS, name) ? name : "locks";
}

function showView() {
  for (const name of Object.keys(VIEWS)) $(`view-${name}`).hidden = name !== view();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${view()}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  $("detail").hidden = view() !== "locks" || chosen === null;
  draw();
}

/** At most once a frame, however much comes in. */
function draw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    if (view() === "locks" && stale) {
      stale = false;
      drawList();
    }
    VIEWS[view()]();
  });
}

function drawStatus() {
  const { state, text } = connection;
  if ($("status").dataset.state !== state) $("status").dataset.state = state;
  setText($("status"), text);
}

function drawNumbers() {
  let waiting = 0;
  for (const info of locks.values()) waiting += info.waiting.length;
  const count = (n, word) => [h("b", { class: "count" }, n.toLocaleString("en")), ` ${word}`];
  $("numbers").replaceChildren(
    ...count(locks.size, locks.size === 1 ? "lock" : "locks"),
    ", ",
    ...count(waiting, "waiting"),
  );
}

function choose(name) {
  chosen = name;
  showDetail(name);
}

openList(choose);
openDetail(() => {
  choose(null);
  $("list").focus();
});
open((event, data) => {
  if (event === "status") return drawStatus();
  if (event === "unlocked") return toast(`“${data.name}” was unlocked by an operator.`);
  if (event === "locks") {
    stale = true;
    drawNumbers();
  }
  draw();
});
addEventListener("hashchange", showView);
addEventListener("resize", draw);
addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target.id !== "search" && view() === "locks") {
    event.preventDefault();
    $("search").focus();
  } else if (event.key === "Escape" && chosen !== null && !$("confirm").open) {
    choose(null);
    $("list").focus();
  }
});
setInterval(() => {
  if (document.hidden) return;
  if (view() === "locks") drawRows();
  if (view() !== "durations") draw();
}, TICK);
showView();
