/** Runs the examples: those of the repository, or a copy that a test has changed. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const EXAMPLES = join(ROOT, "examples");

/** How often an example with a planted mistake runs, at most: where processes race, a busy machine may hide it once. */
const MOST_RUNS = 5;

export interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Builds the library unless that was done. Times are long, because each example starts several processes. */
export function useExamples(): void {
  vi.setConfig({ testTimeout: 150_000 });
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

export interface Example {
  /** The output when everything is as the example says. */
  readonly says: RegExp;
  /** Code, its replacement, and the assertion that notices it. */
  readonly fault: { readonly from: string; readonly to: string; readonly noticed: RegExp };
}

/** Two tests of an example in one file: it proves what it says, and it notices when it is broken. */
export function testExample(file: string, { says, fault }: Example): void {
  test(`${file} proves what it says`, async () => {
    const { code, output } = await runExample(file);
    expect(output).toMatch(says);
    expect(code).toBe(0);
  });

  test(`${file} notices: ${fault.to || "nothing"} for ${fault.from.trim()}`, async () => {
    let ended: Ended = { code: 0, output: "" };
    for (let i = 0; i < MOST_RUNS && ended.code === 0; i++)
      ended = await runChanged(file, file, fault.from, fault.to);
    const { code, output } = ended;
    expect(output).toMatch(/AssertionError/);
    expect(output).toMatch(fault.noticed);
    expect(code).toBe(1);
  });
}

/** Runs an example; a TypeScript file is translated first, in a copy. */
export async function runExample(file: string, directory: string = EXAMPLES): Promise<Ended> {
  if (!file.endsWith(".ts")) return runFile(join(directory, file));
  const copy = directory === EXAMPLES ? await copyExamples() : directory;
  const source = await readFile(join(copy, file), "utf8");
  const { code } = await transform(source, { loader: "ts", target: "node20" });
  const translated = join(copy, `${file}.mjs`);
  await writeFile(translated, code);
  return runFile(translated);
}

/** Runs `file` in a copy of the examples, after `from` was replaced by `to` in the file `changed`. */
export async function runChanged(file: string, changed: string, from: string, to: string): Promise<Ended> {
  const copy = await copyExamples();
  const source = await readFile(join(copy, changed), "utf8");
  const other = source.replace(from, to);
  expect(other).not.toBe(source);
  await writeFile(join(copy, changed), other);
  return runExample(file, copy);
}

async function copyExamples(): Promise<string> {
  // Inside the package, so that the copy finds the library by its name.
  await mkdir(join(ROOT, "out"), { recursive: true });
  const copy = await mkdtemp(join(ROOT, "out", "examples-"));
  copies.push(copy);
  await cp(EXAMPLES, copy, { recursive: true });
  return copy;
}

function runFile(path: string): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [path], (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}
