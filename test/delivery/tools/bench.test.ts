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
  min: number;
  med: number;
  max: number;
  samples: number[];
  ratio?: { med: number };
}
interface Entry {
  id: string;
  variant: string;
  peers: Record<
    string,
    { violations: number; errors: string[]; curve?: number[][]; metrics: Record<string, Figure> }
  >;
}
interface Results {
  date: string;
  machine: string;
  versions: Record<string, string>;
  skipped: Record<string, string>;
  scenarios: Entry[];
  fits: { id: string; peer: string; figure: string; exponent: number }[];
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

describe("a run of few scenarios", () => {
  let run: Run;
  beforeAll(() => {
    const variants = ["one lock", "16 waiters, bursts", "1 masters", "3 masters"].join(",");
    const scenarios = ["--scenarios", "serial,hand-over,growth-masters", "--variants", variants];
    run = bench(...scenarios, "--peers", "holdfast,wire,redlock5");
  }, LONG_MS);

  const entry = (id: string): Entry => {
    const found = run.results.scenarios.find((each) => each.id === id);
    if (!found) throw new Error(`${id} was not measured\n${run.output}`);
    return found;
  };

  test("measures this library and the floor, and sees nobody inside together with another", () => {
    expect(run.output).not.toContain("FAILED");
    expect(run.status).toBe(0);
    for (const { peers } of run.results.scenarios) {
      for (const { violations, errors } of Object.values(peers))
        expect([violations, errors]).toEqual([0, []]);
    }
    const { raw, holdfast } = entry("serial").peers;
    expect(raw?.metrics.sentPer?.med).toBeCloseTo(2, 1);
    expect(holdfast?.metrics.ops?.med).toBeGreaterThan(0);
    expect(holdfast?.metrics.ops?.ratio?.med).toBeGreaterThan(0);
    expect(holdfast?.metrics.ops?.samples).toHaveLength(holdfast?.metrics.ops?.n ?? 0);
    const [curve = []] = entry("hand-over").peers.holdfast?.curve ?? [];
    expect(curve.length).toBeGreaterThan(5);
    expect(curve).toEqual([...curve].sort((a, b) => a - b));
  });

  test("measures the least scripts with the same effects beside the library's own", async () => {
    const { wire } = entry("serial").peers;
    expect(wire?.metrics.executedPer?.med).toBeGreaterThan(
      entry("serial").peers.raw?.metrics.executedPer?.med ?? 0,
    );
    const { ratioBeside } = await import(pathToFileURL(join(ROOT, "bench/lib/found.mjs")).href);
    expect(ratioBeside(run.results, ["serial", "", "ops"], "wire")).toBeGreaterThan(0);
  });

  test("says who, where and when", () => {
    const { date, machine, versions } = run.results;
    expect(Math.abs(Date.parse(date) - Date.now())).toBeLessThan(3_600_000);
    expect(machine).toMatch(/^\d+ × /);
    expect(versions.ioredis).toMatch(/^5\./);
    expect(versions.node).toBe(process.version);
  });

  test("leaves out a peer that is not installed, with the reason", () => {
    const isMeasured = "redlock5" in entry("serial").peers;
    const why = run.results.skipped.redlock5;
    if (isMeasured) expect(why).toBeUndefined();
    else expect(why).toMatch(/not installed/);
  });

  test("fits how the masters count", () => {
    const sent = run.results.fits.find(({ figure, peer }) => figure === "sentPer" && peer === "holdfast");
    // Less than 1, because a master that is far behind the others gets fewer commands.
    expect(sent?.exponent).toBeGreaterThan(0.7);
    expect(sent?.exponent).toBeLessThan(1.05);
  });

  test("draws plots of what it has, and no others", () => {
    const plots = readdirSync(run.folder).filter((file) => file.endsWith(".svg"));
    expect(plots.sort()).toEqual(["growth-masters.svg", "latency-16-waiters.svg", "throughput.svg"]);
    for (const plot of plots) {
      const svg = readFileSync(join(run.folder, plot), "utf8");
      expect(svg).toMatch(/^<svg [\s\S]+<\/svg>\n$/);
      expect(svg).not.toMatch(/NaN|undefined|Infinity/);
      expect(svg).toContain(">holdfast</text>");
      expect(svg).toContain("prefers-color-scheme:dark");
      expect(unbalanced(svg)).toEqual([]);
    }
  });

  test("writes every table to a page", () => {
    const page = readFileSync(join(run.folder, "tables.md"), "utf8");
    for (const { variant } of run.results.scenarios) expect(page).toContain(variant);
    expect(page).toContain("serial: cycles/s");
  });
});

test(
  "a lock that does not exclude is a violation, and the exit code tells",
  () => {
    const scenarios = ["--scenarios", "serial,hand-over", "--variants", "one lock,16 waiters, bursts"];
    const run = bench(...scenarios, "--peers", "never-excludes", "--adapter", PLANTED);
    expect(run.status).toBe(1);
    expect(run.output).toMatch(/VIOLATION never-excludes: \d+ in serial/);
    expect(run.output).toMatch(/VIOLATION never-excludes: \d+ in hand-over/);
    expect(run.output).not.toMatch(/VIOLATION (?!never-excludes)/);
  },
  LONG_MS,
);

describe("the figures of made-up data", () => {
  const load = (path: string) => import(pathToFileURL(join(ROOT, path)).href);

  test("an exponent is found, also through noise, and none where there is none", async () => {
    const { fitExponent } = await load("bench/lib/stats.mjs");
    const sizes = [10, 100, 1_000, 10_000];
    for (const exponent of [0, 0.5, 1, 2]) {
      const points = sizes.map((x) => [x, 3 * x ** exponent]);
      expect(fitExponent(points).exponent).toBeCloseTo(exponent, 9);
      const noisy = points.map(([x = 0, y = 0], i) => [x, y * (i % 2 ? 1.1 : 0.9)]);
      expect(Math.abs(fitExponent(noisy).exponent - exponent)).toBeLessThan(0.1);
    }
    expect(fitExponent([[10, 5]])).toBeUndefined();
    expect(
      fitExponent([
        [10, 0],
        [100, 0],
      ]),
    ).toBeUndefined();
  });

  test("Jain's index", async () => {
    const { jain } = await load("bench/lib/stats.mjs");
    expect(jain([3, 3, 3, 3])).toBe(1);
    expect(jain([1, 0, 0, 0])).toBe(0.25);
  });

  test("a page is refreshed between its markers alone", async () => {
    const { refreshed } = await load("bench/report.mjs");
    const page = "a\n\n<!-- x -->\n\nold\n\n<!-- /x -->\n\nb\n";
    const fresh = "a\n\n<!-- x -->\n\nnew\n\n<!-- /x -->\n\nb\n";
    expect(refreshed(page, { x: ["new"] })).toBe(fresh);
    expect(refreshed(fresh, { x: ["new"] })).toBe(fresh);
    expect(() => refreshed(page, { y: ["new"] })).toThrow(/y/);
  });
});

/** The first element that is closed in the wrong place, or those that are never closed. */
function unbalanced(svg: string): string[] {
  const open: string[] = [];
  for (const [, close, name = "", empty] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (empty) continue;
    if (!close) open.push(name);
    else if (open.pop() !== name) return [name];
  }
  return open;
}
