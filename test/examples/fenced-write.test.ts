/** The example with the SQL table: it proves what it says, and notices a fence that refuses nothing. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
let copy: string;

beforeAll(async () => {
  if (!existsSync(join(ROOT, "dist/index.js"))) {
    execFileSync("npx", ["tsdown", "--logLevel", "warn"], { cwd: ROOT, stdio: "inherit" });
  }
  // Inside the package, so that it finds the library by its name.
  await mkdir(join(ROOT, "out"), { recursive: true });
  copy = await mkdtemp(join(ROOT, "out", "examples-"));
  await cp(join(ROOT, "examples"), copy, { recursive: true });
});
afterAll(() => rm(copy, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly output: string;
}

function run(directory: string): Promise<Ended> {
  const main = join(directory, "fenced-write/main.mjs");
  return new Promise((resolve) => {
    execFile(process.execPath, [main], (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}

test("the late write of a paused holder is refused by the fence and by the version, not by the lock", async () => {
  const { code, output } = await run(join(ROOT, "examples"));
  expect(output).toMatch(/lock alone: +\{ bens: 1, adas: 1/);
  expect(output).toMatch(/refused the late write/);
  expect(code).toBe(0);
});

test("a statement that does not compare the fence is noticed", async () => {
  const file = join(copy, "fenced-write/writer-process.mjs");
  const source = await readFile(file, "utf8");
  const unfenced = source.replace("AND fence < CAST(?2 AS INTEGER)", "");
  expect(unfenced).not.toBe(source);
  await writeFile(file, unfenced);
  const { code, output } = await run(copy);
  expect(output).toMatch(/AssertionError/);
  expect(code).toBe(1);
});
