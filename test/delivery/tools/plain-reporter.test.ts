/** The last line of a test run, on small runs of their own. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

const MIXED = `import { describe, expect, test } from "vitest";
test("good", () => {});
describe("inside", () => test("good as well", () => {}));
test("bad", () => expect(1).toBe(2));
test("not here", (context) => context.skip("no such server"));
test.skip("not now", () => {});
`;

const THROWS_ASIDE = `import { test } from "vitest";
test("good", () => void Promise.reject(new Error("nobody waits for this")));
`;

const BROKEN_HOOK = `import { beforeAll, describe, test } from "vitest";
describe("inside", () => {
  beforeAll(() => Promise.reject(new Error("no server")));
  test("never run", () => {});
});
`;

const ALL_GOOD = `import { test } from "vitest";
test("good", () => {});
`;

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-reporter-"));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"), "dir");
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

test("tests are counted, and skipped ones are listed with their reasons", async () => {
  expect(await lastLines(3, { "mixed.test.ts": MIXED })).toEqual([
    "skipped: mixed.test.ts: not here (no such server)",
    "skipped: 1 tests, no reason given",
    "2 passed, 1 failed, 2 skipped",
  ]);
});

test("without skipped tests two numbers do", async () => {
  expect(await lastLines(1, { "good.test.ts": ALL_GOOD })).toEqual(["1 passed, 0 failed"]);
});

test("errors outside of tests count as failed", async () => {
  const files = {
    "aside.test.ts": THROWS_ASIDE,
    "hook.test.ts": BROKEN_HOOK,
    "load.test.ts": 'throw new Error("not loaded");\n',
  };
  expect(await lastLines(1, files)).toEqual(["1 passed, 3 failed, 1 skipped"]);
});

test("a run that finds no tests is not green", async () => {
  expect(await lastLines(1, {})).toEqual(["0 passed, 1 failed"]);
});

async function lastLines(count: number, files: Record<string, string>): Promise<string[]> {
  for (const [name, source] of Object.entries(files)) await writeFile(join(folder, name), source);
  const reporter = join(ROOT, "tools/plain-reporter.mjs");
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const args = [
    vitest,
    "run",
    "--root",
    folder,
    "--no-color",
    "--reporter=default",
    `--reporter=${reporter}`,
  ];
  const printed = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, { cwd: folder }, (_error, stdout) => resolve(stdout));
  });
  return printed.trimEnd().split("\n").slice(-count);
}
