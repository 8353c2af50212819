// What was measured, as text and as markdown.

/** Three digits, and k for thousands. */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 100_000) return `${(value / 1_000).toFixed(0)}k`;
  if (size >= 10_000) return `${(value / 1_000).toFixed(1)}k`;
  if (size >= 1_000) return `${(value / 1_000).toFixed(2)}k`;
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size === 0) return "0";
  return value.toFixed(size >= 0.9995 ? 2 : 3);
}

function spread({ n, min, med, max }) {
  if (n === 0) return "–";
  if (n === 1 || number(min) === number(max)) return number(med);
  return `${number(med)} [${number(min)}–${number(max)}]`;
}

const title = ({ title: name, variant }) => `${name}: ${variant}`;

function rowsOf(entry) {
  const withRatio = ({ ratio }) => ratio && entry.floor;
  const head = [
    "",
    ...entry.metrics.flatMap((metric) =>
      withRatio(metric) ? [metric.label, `× ${entry.floor}`] : [metric.label],
    ),
    "violations",
  ];
  const body = Object.entries(entry.peers).map(([name, { metrics, violations }]) => [
    name,
    ...entry.metrics.flatMap((metric) => {
      const figure = metrics[metric.key];
      if (!withRatio(metric)) return [spread(figure)];
      const ratio = name === entry.floor ? "1" : figure.ratio ? spread(figure.ratio) : "–";
      return [spread(figure), ratio];
    }),
    String(violations),
  ]);
  return { head, body };
}

const failuresOf = ({ peers }) =>
  Object.entries(peers).flatMap(([name, { errors }]) => errors.map((error) => `${name}: ${error}`));

/** For a terminal: metrics down, peers across. */
export function text(entry) {
  const { head, body } = rowsOf(entry);
  const lines = head.map((label, i) => [label, ...body.map((row) => row[i])]);
  const widths = lines[0].map((_, i) => Math.max(...lines.map((line) => line[i].length)));
  return [
    `\n== ${title(entry)} (${entry.tookS.toFixed(0)} s)`,
    ...lines.map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i]))
        .join("  ")
        .trimEnd(),
    ),
    ...failuresOf(entry).map((failure) => `FAILED ${failure}`),
  ].join("\n");
}

/** A markdown table with columns of equal width, as the formatter leaves it. */
export function table(head, rows) {
  const lines = [head, ...rows].map((row) => row.map((cell) => String(cell ?? "").replaceAll("|", "\\|")));
  const widths = head.map((_, i) => Math.max(3, ...lines.map((line) => line[i].length)));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [line(lines[0]), rule, ...lines.slice(1).map(line)].join("\n");
}

/** Everything that was measured, transposed so that it can be read on a page. */
export function markdown(entry) {
  const { head, body } = rowsOf(entry);
  const rows = head.slice(1).map((label, i) => [label, ...body.map((row) => row[i + 1])]);
  const failures = failuresOf(entry).map((failure) => `- failed: ${failure}`);
  return [
    `### ${title(entry)}`,
    table(["", ...body.map(([name]) => name)], rows),
    ...(failures.length > 0 ? [failures.join("\n")] : []),
  ].join("\n\n");
}
