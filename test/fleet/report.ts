/** The report of a soak: its figures as data, and a page to read. */
import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BOUND, type Campaign, groupOf } from "./campaign.js";

const FOLDER = fileURLToPath(new URL("../../out/soak", import.meta.url));

/** Whether nothing went wrong, and something happened. */
export function passed({ violations, errors, acquisitions }: Campaign): boolean {
  return violations.length === 0 && errors.length === 0 && acquisitions > 0;
}

/** What happened, in some lines. */
export function summaryOf(campaign: Campaign): string[] {
  const { acquisitions, errors, faults, figures, options, seconds, slowest, violations } = campaign;
  const all = Object.entries(figures);
  const most = (of: "longestWait" | "longestStall") =>
    Math.round(Math.max(0, ...all.map(([, each]) => each[of])));
  const sumOf = (of: "ordered" | "undecided") => all.reduce((sum, [, each]) => sum + each[of], 0);
  return [
    `${options.topology}, ${seconds} s: ${acquisitions} acquisitions, ${faults.length} faults, ${violations.length} violations, ` +
      `${errors.length} errors`,
    `longest wait ${most("longestWait")} ms; for a lock that was free, and no fault under way, ${most("longestStall")} ms of the ` +
      `${BOUND} ms allowed (and more on a slow machine: the witness once took ${Math.round(slowest)} ms for an answer)`,
    `one order explains all answers, by ${sumOf("ordered")} steps of the search; ${sumOf("undecided")} names are undecided`,
    `acquisitions: ${all.map(([kind, { stays }]) => `${stays} ${kind}`).join(", ")}`,
    `faults: ${[...faultCounts(campaign)].map(([name, count]) => `${count} ${name}`).join(", ")}`,
  ];
}

/** Writes the data and the page; returns the page's path. */
export async function write(campaign: Campaign, command: string): Promise<string> {
  const { counts, errors, faults, figures, options, violations } = campaign;
  const summary = summaryOf(campaign);
  const data = {
    passed: passed(campaign),
    command,
    ...options,
    summary,
    figures,
    counts,
    violations,
    errors,
    faults,
  };
  await mkdir(FOLDER, { recursive: true });
  const file = join(FOLDER, `${options.topology}-${options.seed}`);
  await writeFile(`${file}.json`, JSON.stringify(data, undefined, 1));
  await writeFile(`${file}.html`, pageOf(campaign, command, summary));
  return `${file}.html`;
}

function faultCounts({ faults }: Campaign): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { name } of faults) counts.set(name, (counts.get(name) ?? 0) + 1);
  return new Map([...counts].sort(([, a], [, b]) => b - a));
}

function escaped(text: unknown): string {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function table(title: string, head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = (tag: string, row: readonly unknown[]) =>
    row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join("");
  const body = rows.map((row) => `<tr>${cells("td", row)}</tr>`).join("\n");
  return rows.length === 0 ? "" : `<h2>${title}</h2><table><tr>${cells("th", head)}</tr>\n${body}</table>`;
}

/** When each fault was, as bars on a line for each kind of fault. */
function timeline({ faults, seconds }: Campaign): string {
  const names = [...new Set(faults.map(({ name }) => name))].sort((a, b) =>
    groupOf(a).localeCompare(groupOf(b)),
  );
  const [left, width, step] = [170, 750, 20];
  const x = (ms: number) => left + (width * ms) / (1_000 * seconds);
  const rows = names.map((name, i) => {
    const bars = faults
      .filter((fault) => fault.name === name)
      .map(
        ({ from, to }) =>
          `<rect x="${x(from)}" y="${i * step + 4}" width="${Math.max(1, x(to) - x(from))}" height="12"/>`,
      );
    return `<text x="0" y="${i * step + 14}">${escaped(name)}</text>${bars.join("")}`;
  });
  return `<h2>When the faults came</h2><svg viewBox="0 0 ${left + width} ${names.length * step}">${rows.join("\n")}</svg>`;
}

const STYLE = `:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:auto;padding:24px}
table{border-collapse:collapse}td,th{padding:4px 16px 4px 0;text-align:left;border-bottom:1px solid #8884}
svg{width:100%;font-size:13px;fill:currentColor}rect{fill:#d97706}`;

function pageOf(campaign: Campaign, command: string, summary: readonly string[]): string {
  const { errors, figures, options, violations } = campaign;
  const title = `Soak: ${options.topology}, ${passed(campaign) ? "passed" : "failed"}`;
  const whole = (ms: number) => Math.round(ms);
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><style>${STYLE}</style>
<h1>${title}</h1>${summary.map((line) => `<p>${escaped(line)}</p>`).join("\n")}
<p>${new Date().toISOString()}, Node ${process.version}, ${cpus().length} cores<br><code>${escaped(command)}</code></p>
${table(
  "Violations",
  ["round", "what", "lock", "detail"],
  violations.slice(0, 200).map((each) => [each.round, each.kind, each.lock, each.detail]),
)}
${table(
  "Errors",
  ["error"],
  errors.slice(0, 50).map((error) => [error]),
)}
${table(
  "By kind",
  ["", "acquisitions", "longest wait, ms", "longest stall, ms", "steps of the search"],
  Object.entries(figures).map(([kind, each]) => [
    kind,
    each.stays,
    whole(each.longestWait),
    whole(each.longestStall),
    each.ordered,
  ]),
)}
${timeline(campaign)}
${table("Faults", ["", "injected"], [...faultCounts(campaign)])}</html>`;
}
