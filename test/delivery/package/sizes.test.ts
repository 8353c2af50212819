/** What each entry point adds to a bundle: minified and compressed, without the packages that it needs. */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, test } from "vitest";
import manifest from "../../../package.json" with { type: "json" };

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const LIMITS = new URL("sizes.json", import.meta.url);
/** How much larger a change may make an entry. A larger increase is deliberate, and changes sizes.json, or a mistake. */
const TOLERANCE = 1.05;

/** `.`, `./http` and so on. */
const ENTRIES = Object.keys(manifest.exports).filter((path) => !path.endsWith(".json"));

/** kB of the entry alone: the other entries import the root as a separate file. */
async function sizeOf(entry: string): Promise<number> {
  const name = entry === "." ? "index" : entry.slice("./".length);
  const { outputFiles } = await build({
    entryPoints: [`${ROOT}/dist/${name}.js`],
    bundle: true,
    minify: true,
    write: false,
    platform: "node",
    format: "esm",
    packages: "external",
    external: entry === "." ? [] : ["./index.js"],
    logLevel: "error",
  });
  return Math.round((gzipSync(outputFiles[0]?.contents ?? "").length / 1_000) * 10) / 10;
}

test("no entry has grown unnoticed; HOLDFAST_SIZES=write takes the sizes as they are", async () => {
  const sizes = Object.fromEntries(
    await Promise.all(ENTRIES.map(async (entry) => [entry, await sizeOf(entry)] as const)),
  );
  if (process.env.HOLDFAST_SIZES === "write") await writeFile(LIMITS, `${JSON.stringify(sizes, null, 2)}\n`);
  const limits = JSON.parse(await readFile(LIMITS, "utf8")) as Record<string, number>;
  expect(Object.keys(limits).sort()).toEqual(Object.keys(sizes).sort());
  const grown = Object.entries(sizes).filter(([entry, size]) => size > (limits[entry] ?? 0) * TOLERANCE);
  expect(grown).toEqual([]);
});
