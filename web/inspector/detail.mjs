// One lock, with all that is known of it; and its unlock by the operator.

import { numbersOf } from "../../src/entries/inspector/shown.ts";
import { $, duration, h, seconds, setText } from "./dom.mjs";
import { kindOf, UNTOLD } from "./list.mjs";
import { colourOf, locks, nameOf, now } from "./store.mjs";
import { drawLanes, drawLog } from "./timeline.mjs";

const MOST = 100;
const meta = (name) => document.querySelector(`meta[name="holdfast-${name}"]`).content;
const canUnlock = meta("unlock") === "yes";

let name;
let toastTimer;

/** `closed`: the lock is no longer shown. */
export function openDetail(closed) {
  $("close").addEventListener("click", closed);
  $("unlock").addEventListener("click", ask);
  $("cancel").addEventListener("click", () => $("confirm").close());
  $("confirmed").addEventListener("click", () => unlock($("confirm").asked));
}

export function showDetail(chosen) {
  name = chosen ?? undefined;
  $("detail").hidden = name === undefined;
  drawDetail();
}

export function drawDetail() {
  if (name === undefined) return;
  const info = locks.get(name);
  setText($("detail-name"), name);
  setText($("detail-facts"), info ? factsOf(info) : "Free.");
  const holders = info?.holders ?? [];
  $("unlock").hidden = !canUnlock || holders.length === 0;
  $("holders").replaceChildren(
    ...(holders.length > 0 ? holders.map(holderCard) : [none((info && numbersOf(info)) || "Nobody")]),
  );
  const waiting = info?.waiting ?? [];
  setText($("waiters-title"), waiting.length > 0 ? `Waiting: ${waiting.length}` : "Waiting");
  const cards = waiting.slice(0, MOST).map(waiterCard);
  $("waiters").replaceChildren(...(cards.length > 0 ? cards : [none("Nobody, as far as known")]));
  drawLanes($("detail-lane"), [name], false);
  drawLog($("detail-log"), name);
}

function factsOf(info) {
  const end = `lapses in ${seconds(Math.max(0, info.end - now()))} unless renewed`;
  return `${kindOf(info)} · ${info.ttl < 0 ? numbersOf(info) : end}`;
}

function none(text) {
  return h("li", { class: "faint" }, text);
}

function holderCard(holder) {
  const { client, count, ownerId, since } = holder;
  const held = since ? duration(Math.max(0, now() - Date.parse(since))) : "";
  const times = count > 1 ? `${count} holds` : "";
  const item = card(
    holder,
    held && `for ${held}`,
    client ? `${client.host}, pid ${client.pid}` : ownerId,
    times,
  );
  if (!since) item.append(h("small", { class: "wide" }, UNTOLD));
  return item;
}

function waiterCard(waiter) {
  const { client, holds = [], ownerId, since } = waiter;
  const waited = since ? `for ${duration(Math.max(0, now() - Date.parse(since)))}` : "";
  const place = client ? `${client.host}, pid ${client.pid}` : (ownerId ?? "");
  return card(waiter, waited, place, holds.length > 0 ? `holds ${holds.join(", ")}` : "");
}

function card(party, time, place, more) {
  return h(
    "li",
    { class: colourOf(party) },
    h("b", {}, nameOf(party)),
    h("span", {}, time),
    h("small", {}, place),
    h("small", {}, more),
  );
}

/** Whoever holds it now is shown, and only from them it is taken. */
function ask() {
  const info = locks.get(name);
  if (!info) return;
  const dialog = $("confirm");
  dialog.asked = { name, ownerIds: info.holders.map(({ ownerId }) => ownerId) };
  $("confirm-title").textContent = `Unlock “${name}”?`;
  $("confirm-holders").replaceChildren(...info.holders.map(holderCard));
  dialog.showModal();
}

/** `asked`: the lock and its holders as the operator was asked about them; another lock may be shown before the answer. */
async function unlock(asked) {
  $("confirm").close();
  const headers = { "content-type": "application/json", "x-holdfast-csrf": meta("csrf") };
  try {
    const body = JSON.stringify(asked);
    const response = await fetch("api/unlock", { method: "POST", headers, body });
    if (!response.ok) return toast(`Not unlocked: ${(await response.text()).trim() || response.status}`);
    const { unlocked } = await response.json();
    toast(unlocked ? `“${asked.name}” is unlocked.` : `“${asked.name}” was free already.`);
  } catch {
    toast("No answer: nobody knows whether it was unlocked.");
  }
}

export function toast(text) {
  clearTimeout(toastTimer);
  $("toast").textContent = text;
  toastTimer = setTimeout(() => $("toast").replaceChildren(), 8_000);
}
