/** The report of a soak: its data, and the files in out/soak. */
import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pageOf } from "./page.mjs";
import { BOUND, LIMITS, limitsOf } from "./parts.js";
import { type Soak, type SoakOptions, STEPS } from "./soak.js";
import type { Scene, Second, Struck } from "./tape.js";
import type { Violation } from "./verdict.js";

const FOLDER = fileURLToPath(new URL("../../out/soak", import.meta.url));

export interface Report {
  readonly passed: boolean;
  readonly command: string;
  readonly topology: string;
  readonly seed: number;
  readonly seconds: number;
  readonly date: string;
  /** The machine, and its load at the start and at the end: averages of one minute. */
  readonly machine: { readonly node: string; readonly cores: number; readonly load: readonly number[] };
  readonly summary: readonly string[];
  readonly acquisitions: number;
  /** Milliseconds for which a waiter may sleep although the lock is free, and the allowance for a slow machine. */
  readonly bound: number;
  readonly slack: number;
  readonly kinds: readonly KindFigures[];
  readonly faultCounts: Readonly<Record<string, number>>;
  /** What the workers counted themselves: lost holds, calls without an answer, and so on. */
  readonly counts: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
  readonly errors: readonly string[];
  readonly faults: readonly Struck[];
  readonly series: readonly Second[];
  readonly scene: Scene | undefined;
}

export interface KindFigures {
  readonly kind: string;
  readonly acquisitions: number;
  /** Milliseconds from a call to its grant. */
  readonly longestWait: number;
  /**
   * Milliseconds of the wait while the lock was free and no fault was active; undefined where only the bound is
   * checked.
   */
  readonly longestStall: number | undefined;
}

export function reportOf(
  { tape, verdict, slowest }: Soak,
  { topology, seed, seconds }: SoakOptions,
  { command, load }: { readonly command: string; readonly load: readonly number[] },
): Report {
  const { violations, errors, counts, stalls } = verdict;
  const faultCounts: Record<string, number> = {};
  for (const { name } of tape.faults) faultCounts[name] = (faultCounts[name] ?? 0) + 1;
  const kinds = Object.entries(tape.kinds).map(([kind, figures]) => {
    return { kind, ...figures, longestStall: stalls[kind] };
  });
  const acquisitions = kinds.reduce((sum, kind) => sum + kind.acquisitions, 0);
  const longest = kinds.reduce((most, { longestWait }) => Math.max(most, longestWait), 0);
  const bounded = kinds.filter(({ kind }) => limitsOf(kind) === LIMITS);
  const stall = bounded.reduce((most, { longestStall = 0 }) => Math.max(most, longestStall), 0);
  const slack = Math.round(STEPS * slowest);
  return {
    passed: violations.length === 0 && errors.length === 0 && acquisitions > 0,
    command,
    topology,
    seed,
    seconds,
    date: new Date().toISOString(),
    machine: { node: process.version, cores: cpus().length, load },
    summary: [
      `${topology}, ${Math.round(tape.at() / 1_000)} s: ${acquisitions} acquisitions, ${tape.faults.length} faults, ` +
        `${violations.length} violations, ${errors.length} errors`,
      `longest wait ${Math.round(longest)} ms; for a lock that was free, and no fault under way, ${Math.round(stall)} ms of the ` +
        `${BOUND} ms allowed (and ${slack} ms more, since the witness once took ${Math.round(slowest)} ms for an answer)`,
      ...(verdict.disorderly > 0
        ? [`the machine was too slow to judge the order of waiters in ${verdict.disorderly} rounds`]
        : []),
      `acquisitions: ${kinds.map(({ kind, acquisitions: count }) => `${count} ${kind}`).join(", ")}`,
      `faults: ${Object.entries(faultCounts)
        .map(([name, count]) => `${count} ${name}`)
        .join(", ")}`,
    ],
    acquisitions,
    bound: BOUND,
    slack,
    kinds,
    faultCounts,
    counts,
    violations,
    errors,
    faults: tape.faults,
    series: tape.seconds,
    scene: tape.scene,
  };
}

/** Writes the data and the page; returns the page's path. */
export async function write(report: Report): Promise<string> {
  await mkdir(FOLDER, { recursive: true });
  const name = `${report.topology}-${report.seed}`;
  const page = join(FOLDER, `${name}.html`);
  await writeFile(join(FOLDER, `${name}.json`), JSON.stringify(report, undefined, 1));
  await writeFile(page, pageOf(report));
  return page;
}
