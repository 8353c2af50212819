// The timeline as text: one row of characters for each clerk, each character a slice of time.

/** Characters that differ even where there are no colours. */
export const GLYPHS = {
  holds: "█",
  nested: "▓",
  waits: "░",
  "no-lock": "▞",
  lapsing: "╌",
  renewed: "↻",
  "gave-up": "⊘",
  killed: "✗",
  lost: "!",
};

/** ANSI codes, and what they mean. */
const COLOURS = {
  holds: 36,
  nested: 34,
  waits: 33,
  "no-lock": 31,
  lapsing: 31,
  renewed: "30;46",
  "gave-up": "1;33",
  killed: "1;31",
  lost: "1;31",
  good: 32,
  bad: "1;31",
  title: 1,
  faint: 2,
};

export function paint(kind, text, colours) {
  return colours ? `\x1b[${COLOURS[kind]}m${text}\x1b[0m` : text;
}

/** Milliseconds a character may stand for; the first that makes the step fit is taken. */
const SCALES = [20, 25, 40, 50, 80, 100, 200, 400, 1_000, 5_000];
const LABEL = 8;
const LEAST_COLUMNS = 20;

/** The rows of a step up to `until`, and the axis below them, at most `width` characters wide. */
export function drawLanes(timeline, step, until, width, colours) {
  const room = Math.max(LEAST_COLUMNS, width - LABEL);
  const length = Math.max(until - step.from, step.to ? 0 : step.seconds * 1_000);
  const scale = SCALES.find((ms) => length / ms <= room) ?? SCALES.at(-1);
  const columns = Math.min(room, Math.ceil((until - step.from) / scale));
  const rows = timeline.lanes.map(() => []);
  for (let i = 0; i < columns; i++) {
    const from = step.from + i * scale;
    const kinds = column(timeline.lanes, from, Math.min(from + scale, until));
    for (const [lane, kind] of kinds.entries()) rows[lane].push(kind);
  }
  const lanes = timeline.lanes.map(({ name }, i) => label(name) + drawRow(rows[i], colours));
  return [
    ...lanes,
    label("") + paint("faint", axis(scale, Math.min(room, Math.ceil(length / scale))), colours),
  ];
}

function label(name) {
  return `   ${name}`.padEnd(LABEL);
}

/** What each lane shows of one slice of time: a mark, else what it was doing for most of it. */
function column(lanes, from, to) {
  const shares = lanes.map((lane) => sharesOf(lane, from, to));
  // Several may hold within one slice, one after the other. Only the longest is shown to hold: that is how it was.
  const held = shares.map((share) => (share.get("holds") ?? 0) + (share.get("nested") ?? 0));
  const holder = held.indexOf(Math.max(...held));
  return lanes.map((lane, i) => {
    const mark = lane.marks.findLast(({ at }) => at >= from && at < to);
    if (mark) return mark.mark;
    const share = [...shares[i]].filter(
      ([state]) => i === holder || (state !== "holds" && state !== "nested"),
    );
    return share.sort(([, a], [, b]) => b - a)[0]?.[0];
  });
}

/** Milliseconds that the lane spent in each state. */
function sharesOf(lane, from, to) {
  const shares = new Map();
  for (let i = lane.spans.length - 1; i >= 0; i--) {
    const span = lane.spans[i];
    const spent = Math.min(span.to ?? to, to) - Math.max(span.from, from);
    if (spent > 0) shares.set(span.state, (shares.get(span.state) ?? 0) + spent);
    if ((span.to ?? to) < from) break;
  }
  return shares;
}

function drawRow(kinds, colours) {
  return kinds.map((kind) => (kind ? paint(kind, GLYPHS[kind], colours) : " ")).join("");
}

/** "0 s     0.5 s     1 s": a time stands above (that is, begins at) its column. */
function axis(scale, columns) {
  const every = [0.1, 0.25, 0.5, 1, 2, 5, 10, 60].find((s) => (s * 1_000) / scale >= 10) ?? 600;
  let text = "";
  for (let s = 0; (s * 1_000) / scale + 6 <= columns; s += every) {
    text = `${text.padEnd(Math.round((s * 1_000) / scale))}╵${Number(s.toFixed(2))} s`;
  }
  return text;
}
