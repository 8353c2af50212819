/** The bench in its smallest form: it measures, writes its results, and notices a lock that does not exclude. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PLANTED = fileURLToPath(new URL("planted/never-excludes.mjs", import.meta.url));
const LONG_MS = 120_000;

interface Figure {
  n: number;
  med: number;
  samples: number[];
  ratio?: { med: number };
}
interface Peer {
  violations: number;
  errors: string[];
  curve?: number[][];
  metrics: Record<string, Figure>;
}
interface Results {
  scenarios: { id: string; variant: string; peers: Record<string, Peer> }[];
}
interface Run {
  folder: string;
  status: number | null;
  output: string;
  results: Results;
}

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** Runs the bench as briefly as possible; it installs no missing peers. */
function bench(...flags: string[]): Run {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-test-"));
  folders.push(folder);
  const small = ["--no-install", "--no-pin", "--seconds", "0.1", "--repeats", "1", "--out", folder];
  const { status, stdout, stderr } = spawnSync(process.execPath, ["bench/run.mjs", ...small, ...flags], {
    cwd: ROOT,
    encoding: "utf8",
  });
  const output = stdout + stderr;
  const file = join(folder, "results.json");
  if (!existsSync(file)) throw new Error(`the bench has left nothing:\n${output}`);
  const results = JSON.parse(readFileSync(file, "utf8")) as Results;
  return { folder, status, output, results };
}

const load = (path: string) => import(pathToFileURL(join(ROOT, path)).href);

const SCENARIOS = ["--scenarios", "serial,hand-over", "--variants", "one lock,16 waiters, bursts"];

describe("a run of few scenarios", () => {
  let run: Run;
  let serial: Record<string, Peer>;
  beforeAll(() => {
    run = bench(...SCENARIOS, "--peers", "holdfast,wire");
    serial = run.results.scenarios.find(({ id }) => id === "serial")?.peers ?? {};
  }, LONG_MS);

  test("it measures this library and the floors, and nobody is inside together with another", async () => {
    expect([run.status, run.output]).toEqual([0, expect.not.stringContaining("FAILED")]);
    const peers = run.results.scenarios.flatMap((scenario) => Object.values(scenario.peers));
    expect(peers.filter(({ violations, errors }) => violations > 0 || errors.length > 0)).toEqual([]);
    const { raw, wire, holdfast } = serial;
    const ops = holdfast?.metrics.ops;
    expect(raw?.metrics.sentPer?.med).toBeCloseTo(2, 1);
    expect(ops?.med).toBeGreaterThan(0);
    expect(ops?.ratio?.med).toBeGreaterThan(0);
    expect(ops?.samples).toHaveLength(ops?.n ?? 0);
    expect(wire?.metrics.executedPer?.med).toBeGreaterThan(raw?.metrics.executedPer?.med ?? 0);
    const { ratioBeside } = await load("bench/lib/found.mjs");
    expect(ratioBeside(run.results, ["serial", "", "ops"], "wire")).toBeGreaterThan(0);
    const handOver = run.results.scenarios.find(({ id }) => id === "hand-over");
    const [curve = []] = handOver?.peers.holdfast?.curve ?? [];
    expect(curve.length).toBeGreaterThan(5);
    expect(curve).toEqual([...curve].sort((a, b) => a - b));
  });

  test("it draws plots of what it has and no others, and writes every table to a page", () => {
    const plots = readdirSync(run.folder).filter((file) => file.endsWith(".svg"));
    expect(plots.sort()).toEqual(["latency-16-waiters.svg", "throughput.svg"]);
    for (const plot of plots)
      expect(readFileSync(join(run.folder, plot), "utf8")).not.toMatch(/NaN|undefined|Infinity/);
    const page = readFileSync(join(run.folder, "tables.md"), "utf8");
    for (const { variant } of run.results.scenarios) expect(page).toContain(variant);
  });
});

test(
  "a lock that does not exclude is a violation, and the exit code tells",
  () => {
    const run = bench(...SCENARIOS, "--peers", "never-excludes", "--adapter", PLANTED);
    expect(run.status).toBe(1);
    expect(run.output).toMatch(/VIOLATION never-excludes: \d+ in serial/);
    expect(run.output).toMatch(/VIOLATION never-excludes: \d+ in hand-over/);
    expect(run.output).not.toMatch(/VIOLATION (?!never-excludes)/);
  },
  LONG_MS,
);
