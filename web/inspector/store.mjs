// What the server tells, by its events: the locks as they are, and what became of them.

const KEPT = 2_000;
/** Milliseconds that a page in the background goes on to listen: nobody looks at it. */
const BACKGROUND = 30_000;
const COLOURS = 8;

/** By name; with `end`: when it lapses, by the server's clock. */
export const locks = new Map();
/** Of the history: { at, what, name, kind, ownerId, label, waited?, held? }, oldest first. */
export const entries = [];
export const connection = { state: "wait", text: "Connecting…", truncated: false };

const colours = new Map();
const labels = new Map();
let offset = 0;
let source;
let tell = () => {};

/** Epoch milliseconds by the server's clock. */
export function now() {
  return Date.now() + offset;
}

/** `changed`: called after each message with its event. */
export function open(changed) {
  tell = changed;
  listen();
  let timer;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden) listen();
    else timer = setTimeout(close, BACKGROUND);
  });
}

function listen() {
  if (source && source.readyState !== EventSource.CLOSED) return;
  source = new EventSource("api/events");
  source.addEventListener("locks", ({ data }) => receive(JSON.parse(data)));
  source.addEventListener("history", ({ data }) => remember(JSON.parse(data)));
  source.addEventListener("unlocked", ({ data }) => tell("unlocked", JSON.parse(data)));
  source.addEventListener("trouble", ({ data }) => say("trouble", troubleOf(JSON.parse(data).code)));
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return say("trouble", "Connection lost, trying again");
    say("trouble", "Refused: reload the page");
  });
}

function close() {
  source.close();
  say("wait", "Paused");
}

function troubleOf(code) {
  return code === "UNAVAILABLE" ? "Redis does not answer" : `Redis answers with an error: ${code}`;
}

function say(state, text) {
  Object.assign(connection, { state, text });
  tell("status");
}

function receive({ at, reset, total, truncated, changed = [], gone = [], renewed = [] }) {
  offset = at - Date.now();
  if (reset) {
    locks.clear();
    entries.length = 0;
  }
  for (const info of changed) locks.set(info.name, seen(info, at));
  for (const name of gone) locks.delete(name);
  for (const [name, ttl] of renewed) {
    const info = locks.get(name);
    if (info) Object.assign(info, { ttl, end: at + ttl });
  }
  connection.truncated = truncated;
  connection.total = total;
  say("live", "Live");
  tell("locks");
}

function seen(info, at) {
  for (const { ownerId, client } of [...info.holders, ...(info.waiting ?? [])]) {
    if (client && ownerId) labels.set(clientIdOf(ownerId), client.label);
  }
  const since = info.holders.map((holder) => (holder.since ? Date.parse(holder.since) : null));
  const waiting = info.waiting?.length
    ? info.waiting
    : info.waiters.map((ownerId) => ({ ownerId, holds: [] }));
  const oldest = Math.min(...since.filter((time) => time !== null));
  const words = [info.name, info.kind, ...[...info.holders, ...waiting].flatMap(wordsOf)]
    .join("\n")
    .toLowerCase();
  return { ...info, end: at + info.ttl, waiting, words, since: Number.isFinite(oldest) ? oldest : null };
}

function wordsOf({ ownerId, client }) {
  return client ? [ownerId, client.label, client.host, `${client.host}:${client.pid}`] : [ownerId];
}

function remember(more) {
  entries.push(...more);
  if (entries.length > KEPT) entries.splice(0, entries.length - KEPT);
  tell("history");
}

function clientIdOf(ownerId = "") {
  return ownerId.slice(0, 36);
}

/** What to call the process of an owner: its label, else the beginning of its id. */
export function nameOf({ ownerId, client, label }) {
  const id = clientIdOf(ownerId);
  return client?.label ?? label ?? labels.get(id) ?? (id ? `${id.slice(0, 8)}…` : "unknown");
}

/** The class of a process's colour: in the order in which they are met. */
export function colourOf(party) {
  const key = party.client?.id ?? clientIdOf(party.ownerId);
  if (!colours.has(key)) colours.set(key, colours.size % COLOURS);
  return `c${colours.get(key)}`;
}
