/**
 * What the library costs, by count, against the figures in `figures.json`: no cost may exceed 1.3 times its figure, and
 * no count of executed code 1.1 times. `HOLDFAST_COST=write npx vitest run test/delivery/cost` measures the figures again and
 * writes them.
 */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { forFile, startRedis, startWorker } from "../../support/index.js";
import { PATIENCE } from "../../support/patience.js";
import type { Figures, Mistake, Part } from "./cost-worker.js";
import type { Told } from "./cycle-worker.js";

const FIGURES = new URL("figures.json", import.meta.url);
const TOLERANCE = 1.3;
/** For executed code, whose count does not depend on what else the machine does. */
const TOLERANCE_OF_PATH = 1.1;
/** Timers that all holds of a client share (command time-outs, the watchdog) come and go: this many more may run. */
const PASSING_TIMERS = 3;
const PARTS: readonly Part[] = ["free", "leased", "renewed", "renewals", "waiting", "handOver"];
const TOLD: readonly Told[] = ["with events", "with channels", "with otel", "with traceHolds"];
const writes = process.env.HOLDFAST_COST === "write";

const PATH = fileURLToPath(new URL("../../../tools/path.mjs", import.meta.url));
/** Long, because a process that counts is slow on a busy machine; no count is a time. */
const LIMIT = 15 * PATIENCE;
/** Room for new objects, so that no garbage is collected before the end of a measurement. */
const ROOM = ["--min-semi-space-size=64", "--max-semi-space-size=64"];

const bundle = bundledWorker(fileURLToPath(new URL("cost-worker.ts", import.meta.url)));
const cycleBundle = bundledWorker(fileURLToPath(new URL("cycle-worker.ts", import.meta.url)));

const server = await forFile(startRedis());
const committed = JSON.parse(await readFile(FIGURES, "utf8")) as Figures;

/** Counts in a process of its own. */
async function count(part: Part, mistake?: Mistake): Promise<Figures> {
  await using worker = await startWorker(bundle(), { execArgv: ["--expose-gc"] });
  return (await worker.request("count", { port: server.port, part, mistake })) as Figures;
}

/** What a warm take and give back allocates, counted in a process of its own. */
async function countCycle(
  order: { readonly isWasteful?: boolean; readonly told?: Told } = {},
): Promise<Figures> {
  await using worker = await startWorker(cycleBundle(), { execArgv: ["--expose-gc", ...ROOM] });
  return (await worker.request("count", { port: server.port, ...order })) as Figures;
}

/** The code of `src` that a warm take and give back executes. */
async function countPath(...flags: string[]): Promise<Figures> {
  const { stdout } = await promisify(execFile)(process.execPath, [PATH, "--totals", ...flags]);
  return Object.fromEntries(
    Object.entries(JSON.parse(stdout) as Figures).map(([title, n]) => [
      `${title} executed: take and give back`,
      n,
    ]),
  );
}

const COUNTS: readonly (readonly [string, () => Promise<Figures>])[] = [
  ...PARTS.map((part) => [part, () => count(part)] as const),
  ["cycle", () => countCycle()],
  ...TOLD.map((told) => [`cycle ${told}`, () => countCycle({ told })] as const),
  ["path", () => countPath()],
];

/** The upper limit for a figure. */
function most(title: string): number {
  const tolerance = title.includes(" executed: ") ? TOLERANCE_OF_PATH : TOLERANCE;
  return (committed[title] ?? 0) * tolerance + (title.startsWith("timers: ") ? PASSING_TIMERS : 0);
}

/** The titles of figures that are too high, or not in the list. */
function excess(counted: Figures): string[] {
  return Object.entries(counted)
    .filter(([title, figure]) => !(title in committed && figure <= most(title)))
    .map(([title]) => title);
}

describe("what is counted stays within 1.3 times the committed figures, executed code within 1.1 times", () => {
  const seen: Record<string, number> = {};

  test.each(COUNTS)("%s", { timeout: LIMIT }, async (_, act) => {
    const counted = await act();
    Object.assign(seen, counted);
    if (!writes) expect({ counted, excess: excess(counted) }).toEqual({ counted, excess: [] });
  });

  test("every figure is counted", async () => {
    const rounded = Object.entries(seen).map(([title, figure]) => [title, Math.round(figure * 10) / 10]);
    if (writes) await writeFile(FIGURES, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`);
    else expect(Object.keys(seen).sort()).toEqual(Object.keys(committed).sort());
  });
});

describe("a mistake is noticed", () => {
  const mistakes: [Mistake, Part, string][] = [
    ["a signal for each hold", "leased", "heap bytes: an idle leased hold"],
    ["a timer for each hold", "leased", "timers: 1000 leased holds"],
    ["a command more", "free", "commands: take a free lock"],
  ];

  test.each(mistakes)("%s", { timeout: LIMIT }, async (mistake, part, title) => {
    expect(excess(await count(part, mistake))).toContain(title);
  });

  test("waste in a take", { timeout: LIMIT }, async () => {
    const counted = await countCycle({ isWasteful: true });
    expect(excess(counted)).toEqual(Object.keys(counted));
  });

  test("waiting, in the path of a take", { timeout: LIMIT }, async () => {
    expect(excess(await countPath("--waits"))).toContain("functions executed: take and give back");
  });
});
