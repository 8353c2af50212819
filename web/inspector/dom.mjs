// Elements, and durations as people read them.

export const $ = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "rect", "text", "line", "path", "title", "g"]);

/** `attributes`: by name; without a value for null and undefined. Children: nodes and texts; null is left out. */
export function h(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Writes only what differs, so that nothing is laid out anew for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Shortened in the middle: the end of a name says as much as its beginning. */
export function cut(text, length) {
  const tail = Math.floor((length - 1) / 2);
  return text.length > length ? `${text.slice(0, length - 1 - tail)}…${text.slice(-tail)}` : text;
}

/** Milliseconds: "340 ms", "4.2 s", "3 min 20 s", "5 h 12 min". */
export function duration(ms) {
  if (ms === null || !Number.isFinite(ms)) return "?";
  if (ms < 0.5) return "0 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const s = ms / 1_000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return `${min} min ${Math.floor(s % 60)} s`;
  if (min < 1_440) return `${Math.floor(min / 60)} h ${min % 60} min`;
  return `${Math.floor(min / 1_440)} d ${Math.floor((min % 1_440) / 60)} h`;
}

/** The same where it stands in a column and changes all the time. */
export function seconds(ms) {
  return ms === null ? "?" : ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : duration(ms);
}

/** "14:03:27". */
export function clock(at) {
  return new Date(at).toLocaleTimeString([], { hour12: false });
}
