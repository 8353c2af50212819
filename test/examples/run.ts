/** Runs the examples: those of the repository, or a copy that a test has changed. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Builds the library if that was not done. */
export function useExamples(): void {
  beforeAll(() => {
    if (!existsSync(join(ROOT, "dist/index.js"))) {
      execFileSync("npx", ["tsdown", "--logLevel", "warn"], { cwd: ROOT, stdio: "inherit" });
    }
  }, 60_000);
  afterAll(async () => {
    for (const directory of copies.splice(0)) await rm(directory, { recursive: true, force: true });
  });
}

const copies: string[] = [];

export function runExample(file: string, directory: string = join(ROOT, "examples")): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(directory, file)], (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}

/** Runs `file` in a copy of the examples, in one of whose files `from` was replaced by `to`. */
export async function runChanged(file: string, changed: string, from: string, to: string): Promise<Ended> {
  // Inside the package, so that it finds the library by its name.
  await mkdir(join(ROOT, "out"), { recursive: true });
  const copy = await mkdtemp(join(ROOT, "out", "examples-"));
  copies.push(copy);
  await cp(join(ROOT, "examples"), copy, { recursive: true });
  const source = await readFile(join(copy, changed), "utf8");
  const other = source.replace(from, to);
  expect(other).not.toBe(source);
  await writeFile(join(copy, changed), other);
  return runExample(file, copy);
}
