/** The bench in its smallest form: it measures, writes its results, and notices a lock that does not exclude. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PLANTED = fileURLToPath(new URL("planted/never-excludes.mjs", import.meta.url));

interface Peer {
  readonly violations: number;
  readonly errors: readonly string[];
  readonly metrics: Readonly<
    Record<string, { readonly med: number; readonly ratio?: { readonly med: number } }>
  >;
}
interface Results {
  readonly scenarios: readonly { readonly id: string; readonly peers: Readonly<Record<string, Peer>> }[];
}

test("it measures this library and the floor, draws it, and tells of a lock that does not exclude, and of no other", {
  timeout: 120_000,
}, () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const small = ["--no-install", "--no-pin", "--seconds", "0.1", "--repeats", "1", "--out", folder];
  const what = ["--scenarios", "serial,hand-over", "--variants", "one lock,16 waiters, bursts"];
  const who = ["--peers", "holdfast,never-excludes", "--adapter", PLANTED];
  const run = ["bench/run.mjs", ...small, ...what, ...who];
  const { status, stdout, stderr } = spawnSync(process.execPath, run, { cwd: ROOT, encoding: "utf8" });
  expect([status, stderr]).toEqual([1, ""]);
  for (const scenario of ["serial", "hand-over"])
    expect(stdout).toMatch(new RegExp(`VIOLATION never-excludes: \\d+ in ${scenario}`));
  expect(stdout).not.toMatch(/FAILED|VIOLATION (?!never-excludes)/);

  const { scenarios } = JSON.parse(readFileSync(join(folder, "results.json"), "utf8")) as Results;
  const right = scenarios.flatMap(({ peers: { "never-excludes": _, ...others } }) => Object.values(others));
  expect(right.filter(({ violations, errors }) => violations > 0 || errors.length > 0)).toEqual([]);
  const { raw, holdfast } = scenarios.find(({ id }) => id === "serial")?.peers ?? {};
  expect(raw?.metrics.sentPer?.med).toBeCloseTo(2, 1);
  expect(holdfast?.metrics.ops?.ratio?.med).toBeGreaterThan(0);
  const plots = readdirSync(folder).filter((file) => file.endsWith(".svg"));
  expect(plots.sort()).toEqual(["latency-16-waiters.svg", "throughput.svg"]);
  for (const plot of plots)
    expect(readFileSync(join(folder, plot), "utf8")).not.toMatch(/NaN|undefined|Infinity/);
  expect(readFileSync(join(folder, "tables.md"), "utf8")).toContain("16 waiters, bursts");
});
