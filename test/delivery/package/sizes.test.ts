/** What each entry point adds to a bundle (minified and compressed, without the packages that it needs), and the package. */
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, test } from "vitest";
import manifest from "../../../package.json" with { type: "json" };

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const LIMITS = new URL("sizes.json", import.meta.url);
/** Bytes: of the package as npm sends it, and as it lies on a disk. */
const PACKED = 600_000;
const UNPACKED = 2_000_000;
/** Entries that take what they get from the user's client: alone they bring nothing of the core but its errors. */
const SMALL = ["./http", "./otel", "./decorator"];
/** How much larger a change may make an entry. A larger increase is deliberate, and changes sizes.json, or a mistake. */
const TOLERANCE = 1.05;

/** `.`, `./http` and so on. */
const ENTRIES = Object.keys(manifest.exports).filter((path) => !path.endsWith(".json"));

/** kB of the entry alone: the other entries import the root as a separate file, unless it is `whole`. */
async function sizeOf(entry: string, whole = entry === "."): Promise<number> {
  const name = entry === "." ? "index" : entry.slice("./".length);
  const { outputFiles } = await build({
    entryPoints: [`${ROOT}/dist/${name}.js`],
    bundle: true,
    minify: true,
    write: false,
    platform: "node",
    format: "esm",
    packages: "external",
    external: whole ? [] : ["./index.js"],
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

test.each(SMALL)("%s alone does not bring the core into a bundle", async (entry) => {
  expect(await sizeOf(entry, true)).toBeLessThan(5);
});

test(`the package weighs at most ${PACKED / 1_000} kB, and ${UNPACKED / 1_000} kB on a disk`, () => {
  const told = execFileSync("npm", ["pack", "--dry-run", "--json", "--silent"], { cwd: ROOT });
  const [{ size, unpackedSize }] = JSON.parse(String(told)) as [{ size: number; unpackedSize: number }];
  expect(size).toBeLessThanOrEqual(PACKED);
  expect(unpackedSize).toBeLessThanOrEqual(UNPACKED);
});
