/** The report of a soak: some lines to read, and all of it as data. */
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

/** Writes the data; returns the path. */
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
  const file = join(FOLDER, `${options.topology}-${options.seed}.json`);
  await writeFile(file, JSON.stringify(data, undefined, 1));
  return file;
}

/** How often each fault was injected, the most frequent one first. */
function faultCounts({ faults }: Campaign): [name: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { name } of faults) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}
