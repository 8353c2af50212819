/** `npm run path` prints the way of a call through the sources. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { PATIENCE } from "../../support/patience.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

test("the page shows lock() before unlock(), each with its place in src, and ends with the totals", {
  timeout: 15 * PATIENCE,
}, () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["tools/path.mjs", "--waits"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const steps = stdout.matchAll(/^( *)(\S.*?) +(src\/\S+):\d+(-\d+)? +\d+$/gm);
  const outermost = Array.from(steps, ([, depth, name]) => (depth === "" ? name : undefined));
  expect(outermost[0]).toBe("lock");
  expect(outermost).toContain("unlock");
  expect(stdout).toMatch(/\n\d+ files, \d+ functions, \d+ lines\n$/);
});
