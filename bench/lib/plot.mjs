// Plots as SVG, for pages in light and dark: lines over two axes, dots in rows, and spans of time in rows.

const WIDTH = 760;
const MARGIN = 76;
const RIGHT = 24;
const TOP = 58;
const AXIS = 48;
const LEGEND_LINE = 20;

/** By name, so that everybody has the same colour in all plots: in light, in dark. Floors are grey and dashed. */
const COLOURS = {
  holdfast: ["#c2410c", "#fb923c"],
  "holdfast-fair": ["#a16207", "#facc15"],
  "holdfast-read-write": ["#a16207", "#facc15"],
  "redis-semaphore": ["#1d4ed8", "#60a5fa"],
  "redlock-universal": ["#7e22ce", "#c084fc"],
  redlock4: ["#0f766e", "#2dd4bf"],
  redlock5: ["#15803d", "#4ade80"],
  "simple-redis-mutex": ["#be185d", "#f472b6"],
};
const GREY = ["#6b7280", "#9ca3af"];

const escaped = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const tidy = (value) => Number(value.toFixed(1));
const text = (x, y, content, { anchor = "start", kind = "muted", size = 12, turn } = {}) =>
  `<text x="${tidy(x)}" y="${tidy(y)}" class="${kind}" font-size="${size}" text-anchor="${anchor}"${turn ? ` transform="rotate(${turn} ${tidy(x)} ${tidy(y)})"` : ""}>${escaped(content)}</text>`;
const line = (x1, y1, x2, y2, kind) =>
  `<line x1="${tidy(x1)}" y1="${tidy(y1)}" x2="${tidy(x2)}" y2="${tidy(y2)}" class="${kind}"/>`;

/** Of a value on an axis: 1 500 → 1.5k. */
function label(value) {
  if (value === 0) return "0";
  const short = (number) => String(Number(number.toPrecision(3)));
  if (Math.abs(value) >= 1_000_000) return `${short(value / 1_000_000)}M`;
  return Math.abs(value) >= 1_000 ? `${short(value / 1_000)}k` : short(value);
}

/** Powers of ten, with 2 and 5 between while there is room. */
function logTicks(least, most) {
  const decades = Math.log10(most / least);
  const steps = decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
    for (const step of steps) ticks.push(step * 10 ** power);
  }
  return ticks.filter((tick) => tick >= least * 0.999 && tick <= most * 1.001);
}

/** From values to a place between `from` and `to`. `ticks` may be `[[value, label]]`. */
function logScale(values, from, to, { ticks, pad = 1.15 } = {}) {
  const positive = values.filter((value) => value > 0);
  const least = Math.min(...positive) / pad;
  const most = Math.max(...positive) * pad;
  const span = Math.log(most / least);
  const place = (value) => from + ((to - from) * Math.log(Math.max(value, least) / least)) / span;
  return { place, ticks: ticks ?? logTicks(least, most).map((tick) => [tick, label(tick)]) };
}

/** Like a log scale above 1, with a place for 0. */
function countScale(values, from, to) {
  const most = Math.max(10, ...values);
  const place = (value) => from + ((to - from) * Math.log1p(value)) / Math.log1p(most * 1.3);
  const ticks = [0, ...logTicks(1, most)].map((tick) => [tick, label(tick)]);
  return { place, ticks };
}

function linearScale(values, from, to) {
  const most = Math.max(...values, 0);
  const step = [1, 2, 5, 10]
    .map((n) => n * 10 ** Math.floor(Math.log10(most / 4)))
    .find((n) => most / n <= 5);
  const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => [i * step, label(i * step)]);
  return { place: (value) => from + ((to - from) * value) / (most * 1.05), ticks };
}

const SCALES = { log: logScale, count: countScale, linear: linearScale };

class Styles {
  #classes = [];

  /** The class of a name's colour, if it is not given one; `isFloor` makes it grey. */
  of(name, isFloor, colours) {
    const key = name.split("@")[0];
    const i = this.#classes.findIndex((each) => each.name === name);
    if (i >= 0) return `s${i}`;
    const known = isFloor ? GREY : (colours ?? COLOURS[name] ?? COLOURS[key] ?? ["#334155", "#cbd5e1"]);
    this.#classes.push({ name, colours: known, isFloor });
    return `s${this.#classes.length - 1}`;
  }

  css() {
    const rules = (which) =>
      this.#classes
        .map(({ colours }, i) => `.s${i}{stroke:${colours[which]}}.f${i}{fill:${colours[which]}}`)
        .join("");
    return `text{font-family:system-ui,-apple-system,"Segoe UI",sans-serif}
.bg{fill:#fff}.strong{fill:#1f2328}.muted{fill:#59636e}.grid{stroke:#e3e7ec}.axis{stroke:#8b949e}.mark{stroke:#8b949e;stroke-dasharray:3 3}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.floor{stroke-dasharray:6 4}${rules(0)}
@media (prefers-color-scheme:dark){.bg{fill:#0d1117}.strong{fill:#e6edf3}.muted{fill:#9198a1}.grid{stroke:#262c36}.axis{stroke:#656c76}${rules(1)}}`;
  }
}

function frame({ title, subtitle, height, styles, body }) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title)}">
<style>${styles.css()}</style>
<rect class="bg" width="${WIDTH}" height="${height}"/>
${text(16, 26, title, { kind: "strong", size: 16 })}
${text(16, 44, subtitle)}
${body.join("\n")}
</svg>
`;
}

/** Names with their marks, in as many lines as they need. */
function legend(names, top, styles, isFloor) {
  const items = [];
  let x = MARGIN;
  let y = top;
  for (const name of names) {
    const width = 34 + name.length * 7.2;
    if (x + width > WIDTH - RIGHT) {
      x = MARGIN;
      y += LEGEND_LINE;
    }
    const style = styles.of(name, isFloor(name));
    items.push(
      `<path d="M${tidy(x)} ${y - 4}h18" class="line ${style}${isFloor(name) ? " floor" : ""}"/>`,
      `<circle cx="${tidy(x + 9)}" cy="${y - 4}" r="3.5" class="${style.replace("s", "f")}"/>`,
      text(x + 24, y, name, { kind: "strong" }),
    );
    x += width;
  }
  return { items, height: y - top + LEGEND_LINE };
}

/** What stands behind a plot from one value of the x axis to another: `[{ name, colours, from, to }]`. */
function bandsOf(bands, across, bottom, styles) {
  return bands.map(({ name, colours, from, to }) => {
    const left = across.place(from);
    const width = Math.max(1, across.place(to) - left);
    const kind = styles.of(name, false, colours).replace("s", "f");
    return `<rect x="${tidy(left)}" y="${TOP}" width="${tidy(width)}" height="${tidy(bottom - TOP)}" class="${kind}" fill-opacity="0.22"/>`;
  });
}

/**
 * Lines over two axes. `series`: `[{ name, isFloor, colours?, points: [[x, y]] }]`, where a `y` of null parts a line; `x`, `y`:
 * `{ label, scale: "log" | "linear", ticks?: [[value, label]], values?: more of them for the scale }`; `bands` as for
 * {@link bandsOf}. `isDotted`: each point is drawn, and tells its values.
 */
export function lines({
  title,
  subtitle,
  x,
  y,
  series,
  bands = [],
  left = MARGIN,
  height = 300,
  isDotted = true,
}) {
  const styles = new Styles();
  const bottom = TOP + height;
  const all = series.flatMap(({ points }) => points).filter(([, value]) => value !== null);
  const across = SCALES[x.scale]([...all.map(([value]) => value), ...(x.values ?? [])], left, WIDTH - RIGHT, {
    ticks: x.ticks,
    pad: 1,
  });
  const up = SCALES[y.scale](
    all.map(([, value]) => value),
    bottom,
    TOP,
    { ticks: y.ticks },
  );
  const floors = new Set(series.filter(({ isFloor }) => isFloor).map(({ name }) => name));
  const body = [
    ...bandsOf(bands, across, bottom, styles),
    ...up.ticks.flatMap(([value, name]) => [
      line(left, up.place(value), WIDTH - RIGHT, up.place(value), "grid"),
      text(left - 8, up.place(value) + 4, name, { anchor: "end" }),
    ]),
    ...across.ticks.flatMap(([value, name]) => [
      line(across.place(value), TOP, across.place(value), bottom, "grid"),
      text(across.place(value), bottom + 18, name, { anchor: "middle" }),
    ]),
    line(left, bottom, WIDTH - RIGHT, bottom, "axis"),
    text((left + WIDTH - RIGHT) / 2, bottom + 38, x.label, { anchor: "middle" }),
    text(20, (TOP + bottom) / 2, y.label, { anchor: "middle", turn: -90 }),
  ];
  for (const { name, isFloor, colours, points } of series) {
    const style = styles.of(name, isFloor, colours);
    const path = points.map(([a, b], i) => {
      if (b === null) return "";
      const begins = i === 0 || points[i - 1][1] === null;
      return `${begins ? "M" : "L"}${tidy(across.place(a))} ${tidy(up.place(b))}`;
    });
    body.push(`<path d="${path.join("")}" class="line ${style}${isFloor ? " floor" : ""}"/>`);
    for (const [a, b] of isDotted ? points : []) {
      body.push(
        `<circle cx="${tidy(across.place(a))}" cy="${tidy(up.place(b))}" r="3" class="${style.replace("s", "f")}"><title>${escaped(`${name}: ${label(b)} at ${label(a)}`)}</title></circle>`,
      );
    }
  }
  const names = [...series, ...bands].map(({ name }) => name);
  const under = legend([...new Set(names)], bottom + AXIS + 18, styles, (name) => floors.has(name));
  body.push(...under.items);
  return frame({ title, subtitle, height: bottom + AXIS + under.height + 12, styles, body });
}

/**
 * A row for each of `rows`, `[{ label, dots: [{ name, isFloor, value }] }]`, on one axis `x`: `{ label, scale: "log" | "count",
 * mark? }`; `mark` is a value that is drawn as a line.
 */
export function dots({ title, subtitle, x, rows }) {
  const styles = new Styles();
  const left = 240;
  const step = 34;
  const bottom = TOP + rows.length * step;
  const all = rows.flatMap((row) => row.dots);
  const across = SCALES[x.scale](
    all.map(({ value }) => value),
    left,
    WIDTH - RIGHT - 10,
    { pad: 1.3 },
  );
  const floors = new Set(all.filter(({ isFloor }) => isFloor).map(({ name }) => name));
  const body = across.ticks.flatMap(([value, name]) => [
    line(across.place(value), TOP, across.place(value), bottom, "grid"),
    text(across.place(value), bottom + 18, name, { anchor: "middle" }),
  ]);
  if (x.mark !== undefined) body.push(line(across.place(x.mark), TOP, across.place(x.mark), bottom, "mark"));
  body.push(text((left + WIDTH - RIGHT) / 2, bottom + 38, x.label, { anchor: "middle" }));
  for (const [i, row] of rows.entries()) {
    const y = TOP + (i + 0.5) * step;
    body.push(text(left - 12, y + 4, row.label, { anchor: "end", kind: "strong" }));
    body.push(line(left, y, WIDTH - RIGHT, y, "grid"));
    // This library is drawn last, over the others.
    for (const { name, isFloor, value } of [...row.dots].sort(
      (a, b) => a.name.startsWith("holdfast") - b.name.startsWith("holdfast"),
    )) {
      const style = styles.of(name, isFloor).replace("s", "f");
      const size = name.startsWith("holdfast") ? 7 : 5;
      body.push(
        `<circle cx="${tidy(across.place(value))}" cy="${tidy(y)}" r="${size}" class="${style}" fill-opacity="0.9"><title>${escaped(`${name}: ${label(value)}`)}</title></circle>`,
      );
    }
  }
  const names = [...new Set(all.map(({ name }) => name))];
  const under = legend(names, bottom + AXIS + 18, styles, (name) => floors.has(name));
  body.push(...under.items);
  return frame({ title, subtitle, height: bottom + AXIS + under.height + 12, styles, body });
}
