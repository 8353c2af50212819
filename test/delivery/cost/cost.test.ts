/**
 * What the library costs, by count, against `figures.json`: no cost may exceed 1.3 times its figure.
 * `HOLDFAST_COST=write npx vitest run test/delivery/cost` measures the figures again and writes them.
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { forFile, startRedis, startWorker } from "../../support/index.js";
import { PATIENCE } from "../../support/patience.js";
import type { Figures, Part } from "./cost-worker.js";

const FIGURES = new URL("figures.json", import.meta.url);
const TOLERANCE = 1.3;
/** Timers that all holds of a client share (command time-outs, the watchdog) come and go: this many more may run. */
const PASSING_TIMERS = 3;
const PARTS: readonly Part[] = ["leased", "renewed", "waiting", "cycle"];
const writes = process.env.HOLDFAST_COST === "write";
/** Long, because a process that counts is slow on a busy machine; no count is a time. */
const LIMIT = { timeout: 15 * PATIENCE };
/** Room for new objects, so that no garbage is collected before the end of a measurement. */
const ROOM = ["--expose-gc", "--min-semi-space-size=64", "--max-semi-space-size=64"];

const bundle = bundledWorker(fileURLToPath(new URL("cost-worker.ts", import.meta.url)));
const server = await forFile(startRedis());
const committed = JSON.parse(await readFile(FIGURES, "utf8")) as Figures;
const seen: Record<string, number> = {};

/** Counts in a process of its own. */
async function count(part: Part): Promise<Figures> {
  await using worker = await startWorker(bundle(), { execArgv: ROOM });
  return (await worker.request("count", { port: server.port, part })) as Figures;
}

/** The titles of figures that are too high, or not in the list. */
function excess(counted: Figures): string[] {
  const most = (title: string) =>
    (committed[title] ?? 0) * TOLERANCE + (title.startsWith("timers: ") ? PASSING_TIMERS : 0);
  return Object.entries(counted)
    .filter(([title, figure]) => !(title in committed && figure <= most(title)))
    .map(([title]) => title);
}

test.each(PARTS)("%s: no count exceeds its figure by a third", LIMIT, async (part) => {
  const counted = await count(part);
  Object.assign(seen, counted);
  if (!writes) expect({ counted, excess: excess(counted) }).toEqual({ counted, excess: [] });
});

test("every figure is counted, and no other", async () => {
  const rounded = Object.entries(seen).map(([title, figure]) => [title, Math.round(figure * 10) / 10]);
  if (writes) await writeFile(FIGURES, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`);
  else expect(Object.keys(seen).sort()).toEqual(Object.keys(committed).sort());
});
