/** The soak as a command, with a mistake in the library; and its plan of faults. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { PATIENCE } from "../support/index.js";
import { roundsOf } from "./campaign.js";
import { FAULTS } from "./faults.js";
import { planRound } from "./plan.js";
import { TOPOLOGIES } from "./sites.js";

const COMMAND = fileURLToPath(new URL("main.mjs", import.meta.url));
/** A seed of this run alone, so that its report overwrites no other report. */
const SEED = 1_000_000_000 + process.pid;

test("a soak of a lock that is granted to everybody fails, and its report says so", {
  timeout: 15 * PATIENCE,
}, async () => {
  const planted = ["--kinds", "lock", "--planted", "grants what is held"];
  const child = spawn(process.execPath, [COMMAND, "--seed", String(SEED), "--minutes", "0.1", ...planted]);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += String(chunk);
    });
  }
  const [code] = await once(child, "close");
  expect(output).toMatch(/VIOLATION in round 1: (overlap|intrusion|order|lost update) of lock-/);
  expect(code).toBe(1);
  const report = JSON.parse(await readFile(/^report: (.*)$/m.exec(output)?.[1] ?? "", "utf8"));
  expect(report).toMatchObject({ passed: false, seed: SEED });
});

test.each(TOPOLOGIES)("a seed plans the same faults again, and each that there is on %s", (topology) => {
  const { ms: longest, count } = roundsOf(600);
  const plan = (seed: number) =>
    Array.from({ length: count }, (_, round) => planRound(seed, round, topology, longest)).flat();
  expect(plan(7)).toEqual(plan(7));
  expect(plan(7)).not.toEqual(plan(8));
  const names = new Set(plan(7).map(({ name }) => name));
  const possible = FAULTS.filter(({ topologies = TOPOLOGIES }) => topologies.includes(topology));
  expect(names).toEqual(new Set(possible.map(({ name }) => name)));
  for (const { at, ms } of plan(7)) expect(at + ms).toBeLessThanOrEqual(longest);
});
