/** The mistakes that `tools/lock-files.mjs` finds in a lock file. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const TOOL = fileURLToPath(new URL("../../../tools/lock-files.mjs", import.meta.url));
const HASH = "sha512-AA==";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-lock-files-"));
  mkdirSync(join(root, "bench"));
  for (const folder of ["docs", "test/delivery/package/versions"]) {
    mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, folder, "package-lock.json"), JSON.stringify({ packages: {} }));
  }
});
afterEach(() => rmSync(root, { recursive: true }));

type Packages = Record<string, Record<string, unknown>>;

function check(packages: Packages, bench: Packages = {}): { status: number | null; errors: string } {
  writeFileSync(join(root, "package-lock.json"), JSON.stringify({ packages: { "": {}, ...packages } }));
  writeFileSync(join(root, "bench/package-lock.json"), JSON.stringify({ packages: bench }));
  const { status, stderr } = spawnSync(process.execPath, [TOOL, "--root", root], { encoding: "utf8" });
  return { status, errors: stderr };
}

test("packages with their hashes pass, and so does what has none: a link, a part of a bundle, the project itself", () => {
  expect(
    check({
      "node_modules/a": { version: "1.0.0", integrity: HASH },
      "node_modules/a/node_modules/b": { version: "1.0.0", inBundle: true },
      "node_modules/c": { link: true },
      c: { version: "1.0.0" },
    }),
  ).toEqual({ status: 0, errors: "" });
});

test.each([{}, { optional: true, os: ["aix"] }])("a package without a hash is a mistake: %j", (entry) => {
  expect(check({ "node_modules/a": { version: "1.0.0", ...entry } })).toEqual({
    status: 1,
    errors: "package-lock.json: node_modules/a has no integrity\n",
  });
});

test("an address, and a build that is not listed", () => {
  const packages = {
    "node_modules/a": {
      integrity: HASH,
      resolved: "https://registry.example/a.tgz",
      optionalDependencies: { "a-aix": "1.0.0" },
    },
  };
  expect(check({}, packages)).toEqual({
    status: 1,
    errors:
      "bench/package-lock.json: node_modules/a names the host it came from\n" +
      "bench/package-lock.json: a-aix, optional for node_modules/a, is not listed\n",
  });
});
