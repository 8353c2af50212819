/** The soak as a command: a short one passes and writes its report; with a mistake in the library it fails. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { PATIENCE } from "../support/index.js";
import { kindsOn, roundsOf } from "./campaign.js";
import { FAULTS, planRound } from "./plan.js";
import { TOPOLOGIES } from "./sites.js";

const COMMAND = fileURLToPath(new URL("main.mjs", import.meta.url));
/** A seed of this run alone, so that its report overwrites no other report. */
const SEED = 1_000_000_000 + process.pid;

async function soak(...args: readonly string[]) {
  const child = spawn(process.execPath, [COMMAND, "--seed", String(SEED), "--minutes", "0.2", ...args]);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += String(chunk);
    });
  }
  const [code] = await once(child, "close");
  return { code, output };
}

test("a soak of everything on one server passes, and leaves a report", {
  timeout: 15 * PATIENCE,
}, async () => {
  const { code, output } = await soak();
  expect(output).toContain("passed");
  expect(code).toBe(0);
  const page = /^report: (.*)$/m.exec(output)?.[1] ?? "";
  const report = JSON.parse(await readFile(page.replace(/html$/, "json"), "utf8"));
  expect(report).toMatchObject({ passed: true, seed: SEED, violations: [], errors: [] });
  expect(Object.keys(report.figures).sort()).toEqual([...kindsOn("single")].sort());
  const html = await readFile(page, "utf8");
  for (const { name } of report.faults) expect(html).toContain(name);
});

test("a soak of a lock that is granted to everybody fails, and says what happened", {
  timeout: 15 * PATIENCE,
}, async () => {
  const { code, output } = await soak("--kinds", "lock", "--planted", "grants what is held");
  expect(output).toMatch(/VIOLATION in round 1: (overlap|intrusion|order|lost update) of lock-/);
  expect(code).toBe(1);
});

test.each(TOPOLOGIES)("a seed plans the same faults again, and each that there is on %s", (topology) => {
  const { faulty, count } = roundsOf(600);
  const plan = (seed: number) =>
    Array.from({ length: count }, (_, round) => planRound(seed, round, topology, faulty)).flat();
  expect(plan(7)).toEqual(plan(7));
  expect(plan(7)).not.toEqual(plan(8));
  const names = new Set(plan(7).map(({ name }) => name));
  const possible = FAULTS.filter(({ topologies = TOPOLOGIES }) => topologies.includes(topology));
  expect(names).toEqual(new Set(possible.map(({ name }) => name)));
  for (const { at, ms } of plan(7)) expect(at + ms).toBeLessThanOrEqual(faulty);
});
