/** `npm run path` prints the path of the calls through the sources. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { PATIENCE } from "../../support/patience.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

interface Step {
  file: string;
  name: string;
  from: number;
  to: number;
  depth: number;
  lines: number[];
}
interface Walk {
  totals: { files: number; functions: number; lines: number };
  steps: Step[];
}

function path(...flags: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["tools/path.mjs", ...flags], {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

/** Long, because each walk is a build and a process. */
const LONG = 15 * PATIENCE;

let free: Walk;
/** The page of a call that waits. */
let waits: string;
beforeAll(() => {
  free = JSON.parse(path("--json")) as Walk;
  waits = path("--waits");
}, LONG);

test("the steps come in the order in which they run: lock() first, sending it before its reply, then unlock()", () => {
  const names = free.steps.map(({ name }) => name);
  const sent = free.steps.findIndex(({ file }) => file === "src/redis/sender.ts");
  const read = names.indexOf("readAcquired");
  const unlock = names.indexOf("unlock");
  expect(free.steps[0]).toMatchObject({ name: "lock", depth: 0 });
  expect(free.steps[unlock]).toMatchObject({ file: "src/locks/hold.ts", depth: 0 });
  expect([0, sent, read, unlock]).toEqual([0, sent, read, unlock].sort((a, b) => a - b));
  expect(sent).toBeGreaterThan(0);
});

test("a step stands where its function does, and counts lines of code in it", () => {
  for (const { file, name, from, to, lines } of free.steps) {
    const source = readFileSync(`${ROOT}/${file}`, "utf8").split("\n");
    // A class may have a name inside its own body, and callbacks and fields have none.
    const word = name.replace(/^(get|set) |^_/, "");
    const place = source.slice(from - 1, to).join("\n");
    if (!word.startsWith("(") && place.includes("constructor")) expect(source.join("\n")).toContain(word);
    else if (!word.startsWith("(")) expect(source[from - 1]).toContain(word);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.every((line) => line >= from && line <= to && /\w/.test(source[line - 1] ?? ""))).toBe(true);
  }
});

test("the totals are of each line once", () => {
  const { files, functions, lines } = free.totals;
  const places = new Set(free.steps.flatMap((step) => step.lines.map((line) => `${step.file}:${line}`)));
  expect(files).toBe(new Set(free.steps.map(({ file }) => file)).size);
  expect([functions, lines]).toEqual([free.steps.length, places.size]);
});

test("a call that waits has a longer way than one that does not, and the last line of its page the totals", () => {
  const [, functions] = /^\d+ files, (\d+) functions, \d+ lines$/m.exec(waits) ?? [];
  expect(Number(functions)).toBeGreaterThan(free.totals.functions);
  for (const call of ["lock", "unlock"]) {
    expect(waits.match(new RegExp(`^ *${call} +src/\\S+:\\d+-\\d+ +\\d+$`, "gm"))).toHaveLength(
      free.steps.filter(({ name }) => name === call).length,
    );
  }
});

test("CONTRIBUTING.md tells of it, and package.json runs it", () => {
  const read = (file: string) => readFileSync(`${ROOT}/${file}`, "utf8");
  expect(read("CONTRIBUTING.md")).toContain("`npm run path`");
  expect(read("package.json")).toContain("node tools/path.mjs");
});
