/**
 * Runs the recipes of docs/testing.md as they are, on the built package. The runner of node:test runs its recipe; those
 * of Vitest and Jest run as tests of this file. Jest's gets Vitest's functions, which have the same names;
 * test/entries/testing-fakes.test.ts has a realm like Jest's.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { allPages, blocksOf, ROOT } from "../delivery/docs/pages.js";

const JEST = `import { vi } from "vitest";
export * from "vitest";
export const jest = vi;
`;

// Inside the package, so that a recipe finds the library by its name.
mkdirSync(join(ROOT, "out"), { recursive: true });
const folder = mkdtempSync(join(ROOT, "out", "recipes-"));
const page = allPages().filter(({ file }) => file === "docs/testing.md");

/** The file with the only recipe that imports from this module. */
function recipe(module: string): string {
  const [block, ...more] = page.flatMap(blocksOf).filter(({ code }) => code.includes(`from "${module}"`));
  if (!block || more.length > 0) throw new Error(`docs/testing.md should have one recipe for ${module}`);
  const file = join(folder, `${module.replaceAll(/\W+/g, "-")}.mjs`);
  writeFileSync(file, block.code.replace('"@jest/globals"', '"./jest-globals.mjs"'));
  return file;
}

writeFileSync(join(folder, "jest-globals.mjs"), JEST);
afterAll(() => rmSync(folder, { recursive: true }));

for (const runner of ["vitest", "@jest/globals"]) {
  const file = recipe(runner);
  describe(runner, async () => {
    await import(pathToFileURL(file).href);
  });
}

test("node:test", async () => {
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
  const { stdout } = await promisify(execFile)(process.execPath, ["--test", recipe("node:test")], { env });
  expect(stdout).toMatch(/^. pass 1$/m);
  expect(stdout).toMatch(/^. fail 0$/m);
});
