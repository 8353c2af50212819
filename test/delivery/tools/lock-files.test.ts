/** The mistakes that `tools/lock-files.mjs` finds in a lock file. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const TOOL = fileURLToPath(new URL("../../../tools/lock-files.mjs", import.meta.url));
const integrity = "sha512-AA==";
const FOLDERS = ["", "bench", "docs", "test/delivery/package/versions"];
const NAMED = {
  integrity,
  resolved: "https://registry.example/a.tgz",
  optionalDependencies: { "a-aix": "1.0.0" },
};

type Packages = Record<string, Record<string, unknown>>;

test.each<[title: string, packages: Packages, mistakes: string[]]>([
  [
    "packages with their hashes pass, and so do a link, a part of a bundle and the project itself without one",
    {
      "node_modules/a": { version: "1.0.0", integrity },
      "node_modules/a/node_modules/b": { version: "1.0.0", inBundle: true },
      "node_modules/c": { link: true },
      c: { version: "1.0.0" },
    },
    [],
  ],
  [
    "packages without a hash are mistakes, also those of another system",
    {
      "node_modules/a": { version: "1.0.0" },
      "node_modules/b": { version: "1.0.0", optional: true, os: ["aix"] },
    },
    ["node_modules/a has no integrity", "node_modules/b has no integrity"],
  ],
  [
    "an address, and a build that is not listed, are mistakes",
    { "node_modules/a": NAMED },
    ["node_modules/a names the host it came from", "a-aix, optional for node_modules/a, is not listed"],
  ],
])("%s", (_title, packages, mistakes) => {
  const root = mkdtempSync(join(tmpdir(), "holdfast-lock-files-"));
  for (const folder of FOLDERS) {
    mkdirSync(join(root, folder), { recursive: true });
    const content = folder === "bench" ? { "": {}, ...packages } : {};
    writeFileSync(join(root, folder, "package-lock.json"), JSON.stringify({ packages: content }));
  }
  const { status, stderr } = spawnSync(process.execPath, [TOOL, "--root", root], { encoding: "utf8" });
  rmSync(root, { recursive: true });
  const told = mistakes.map((mistake) => `bench/package-lock.json: ${mistake}\n`).join("");
  expect([status, stderr]).toEqual([mistakes.length > 0 ? 1 : 0, told]);
});
