/** Bundles the package and runs the bundles against a server. `npm run test:consumers` adds webpack, Vite and Bun. */
import { build as esbuild, type Format } from "esbuild";
import { rollup } from "rollup";
import { expect, test } from "vitest";
import { forFile, startRedis } from "../../support/index.js";
import { type Consumer, PackedPackage } from "./consumer.js";
import * as programs from "./programs.js";

const [redis, packed] = await Promise.all([forFile(startRedis()), forFile(PackedPackage.create())]);
const consumer = await packed.install("ioredis");

/** esbuild needs this banner to bundle a CommonJS package, such as ioredis, into an ES module. */
const WITH_REQUIRE = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;

/** Bundles a program of `from`, with all that it needs, into a project without packages. */
async function bundled(
  from: Consumer,
  program: string,
  format: Format,
  banner = "",
): Promise<() => Promise<string>> {
  const alone = await packed.install();
  const name = format === "esm" ? "bundle.mjs" : "bundle.cjs";
  await esbuild({
    entryPoints: [await from.write(`${format}.source.js`, program)],
    outfile: alone.path(name),
    format,
    banner: { js: banner },
    bundle: true,
    platform: "node",
    target: "node20.5",
    logLevel: "error",
  });
  return () => alone.node(name, redis.url);
}

test.each([
  ["an ES module", programs.IMPORT, "esm", WITH_REQUIRE],
  ["CommonJS", programs.IMPORT, "cjs", ""],
  ["CommonJS, by require", programs.REQUIRE, "cjs", ""],
] as const)(
  "connect finds ioredis in a bundle by esbuild, %s, in a folder without packages [B45]",
  async (_name, load, format, banner) => {
    const run = await bundled(consumer, programs.takeAndGiveBack(load), format, banner);
    expect(await run()).toBe(programs.TAKEN_AND_GIVEN_BACK);
  },
);

test("a program without ioredis is bundled all the same, and connect says what is missing", async () => {
  const run = await bundled(await packed.install(), programs.connectWithoutIoredis(programs.IMPORT), "cjs");
  expect(await run()).toMatch(/^function\n.*\bnpm install ioredis\n$/);
});

test("rollup bundles it", async () => {
  const input = await consumer.write("source.js", programs.takeAndGiveBack(programs.IMPORT));
  const entry = consumer.path("node_modules/holdfast/dist/index.js");
  // Rollup does not resolve packages itself. Node resolves those that the bundle leaves outside.
  const resolveId = (id: string): string | null => (id === "holdfast" ? entry : null);
  const external = /^(node:|ioredis$|eventemitter3$|nanoid$)/;
  const bundle = await rollup({ input, external, plugins: [{ name: "resolve-holdfast", resolveId }] });
  await bundle.write({ file: consumer.path("rollup.mjs"), format: "es" });
  await bundle.close();
  expect(await consumer.node("rollup.mjs", redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
});
