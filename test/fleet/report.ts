/** The report of a soak: its figures as data, and a page to read. */
import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BOUND, type Campaign } from "./campaign.js";

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
    `${options.topology}, ${seconds} s: ${acquisitions} acquisitions, ${faults.length} faults, ` +
      `${violations.length} violations, ${errors.length} errors`,
    `longest wait ${most("longestWait")} ms; for a lock that was free, and no fault under way, ` +
      `${most("longestStall")} ms of the ${BOUND} ms allowed (and more on a slow machine: the witness once took ` +
      `${Math.round(slowest)} ms for an answer)`,
    `put in order by ${sumOf("ordered")} steps of the search; ${sumOf("undecided")} names are undecided`,
    `acquisitions: ${all.map(([kind, { stays }]) => `${stays} ${kind}`).join(", ")}`,
    `faults: ${faultCounts(campaign)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ")}`,
  ];
}

/** Writes the data and the page; returns the page's path. */
export async function write(campaign: Campaign, command: string): Promise<string> {
  const { counts, errors, faults, figures, options, violations } = campaign;
  const summary = summaryOf(campaign);
  const machine = `${new Date().toISOString()}, Node ${process.version}, ${cpus().length} cores`;
  const data = {
    passed: passed(campaign),
    command,
    machine,
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
  await writeFile(`${file}.html`, pageOf(campaign, [...summary, machine, command]));
  return `${file}.html`;
}

/** How often each fault was injected, the most frequent one first. */
function faultCounts({ faults }: Campaign): [name: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { name } of faults) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}

const STYLE = `:root{color-scheme:light dark}body{font:15px/1.5 system-ui;max-width:960px;margin:auto;padding:24px}
table{border-collapse:collapse}td{padding:4px 16px 4px 0;border-bottom:1px solid #8884}`;

function pageOf(campaign: Campaign, lines: readonly string[]): string {
  const { errors, faults, figures, options, violations } = campaign;
  const escaped = (text: unknown) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const table = (title: string, rows: readonly (readonly unknown[])[]) => {
    const cells = rows.map((row) => `<tr>${row.map((cell) => `<td>${escaped(cell)}</td>`).join("")}</tr>`);
    return rows.length === 0 ? "" : `<h2>${title}</h2><table>${cells.join("\n")}</table>`;
  };
  const title = `Soak: ${options.topology}, ${passed(campaign) ? "passed" : "failed"}`;
  const inSeconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  const broken = violations.slice(0, 200).map(({ round, kind, lock, detail }) => [round, kind, lock, detail]);
  const kinds = Object.entries(figures).map(([kind, { stays, longestWait, longestStall }]) => {
    return [kind, stays, inSeconds(longestWait), inSeconds(longestStall)];
  });
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><style>${STYLE}</style>
<h1>${title}</h1>${lines.map((line) => `<p>${escaped(line)}</p>`).join("\n")}
${table("Violations: round, what, lock, detail", broken)}
${table(
  "Errors",
  errors.slice(0, 50).map((error) => [error]),
)}
${table("By kind: acquisitions, longest wait, longest wait for a free lock", kinds)}
${table(
  "Faults: from, to",
  faults.map(({ name, from, to }) => [name, inSeconds(from), inSeconds(to)]),
)}</html>`;
}
