/** The last line of a test run, on small runs of their own. */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

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
test("good", () => new Promise((resolve) => setTimeout(resolve, 20)));
`;

interface Row {
  readonly title: string;
  readonly files: Readonly<Record<string, string>>;
  readonly last: readonly (string | RegExp)[];
  readonly seconds?: string;
}

test.each<Row>([
  {
    title:
      "tests are counted, errors outside of them count as failed, and skipped ones are listed with their reasons",
    files: {
      "mixed.test.ts": MIXED,
      "aside.test.ts": THROWS_ASIDE,
      "hook.test.ts": BROKEN_HOOK,
      "load.test.ts": 'throw new Error("not loaded");\n',
    },
    last: [
      "skipped: 2 tests, no reason given",
      "skipped: mixed.test.ts: not here (no such server)",
      "3 passed, 4 failed, 3 skipped",
    ],
  },
  { title: "a run that finds no tests is not green", files: {}, last: ["0 passed, 1 failed"] },
  {
    title: "a file that takes longer than it may counts as failed where that is asked for",
    files: { "good.test.ts": ALL_GOOD },
    last: [/^too long: good\.test\.ts took 0\.\d s; at most 0\.001$/, "1 passed, 1 failed"],
    seconds: "0.001",
  },
])("$title", async ({ files, last, seconds }) => {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-reporter-"));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"), "dir");
  for (const [name, source] of Object.entries(files)) await writeFile(join(folder, name), source);
  const reporters = ["default", join(ROOT, "tools/plain-reporter.mjs")].map((name) => `--reporter=${name}`);
  const args = [
    join(ROOT, "node_modules/vitest/vitest.mjs"),
    "run",
    "--root",
    folder,
    "--no-color",
    ...reporters,
  ];
  const { HOLDFAST_TEST_SECONDS: _ours, ...env } = process.env;
  const asked = seconds === undefined ? env : { ...env, HOLDFAST_TEST_SECONDS: seconds };
  const { stdout, status } = spawnSync(process.execPath, args, { cwd: folder, env: asked, encoding: "utf8" });
  await rm(folder, { recursive: true, force: true });
  const lines = stdout.trimEnd().split("\n").slice(-last.length);
  for (const [i, line] of last.entries())
    expect(lines[i]).toEqual(typeof line === "string" ? line : expect.stringMatching(line));
  expect(status === 0).toBe(lines.at(-1)?.includes(" 0 failed"));
});
