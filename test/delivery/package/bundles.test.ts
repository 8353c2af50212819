/** Bundles the package and runs the bundles against a server. `npm run test:consumers` adds webpack and Next. */
import { build as esbuild, type Format } from "esbuild";
import { rollup } from "rollup";
import { describe, expect, test } from "vitest";
import { forFile, startRedis } from "../../support/index.js";
import { PackedPackage } from "./consumer.js";
import * as programs from "./programs.js";

const [redis, packed] = await Promise.all([forFile(startRedis()), forFile(PackedPackage.create())]);
const consumer = await packed.install("ioredis");

describe("bundling", () => {
  const esbuildCases: [string, string, Format, string][] = [
    ["an import into an ES module", programs.IMPORT, "esm", "mjs"],
    ["an import into CommonJS", programs.IMPORT, "cjs", "cjs"],
    ["a require into CommonJS", programs.REQUIRE, "cjs", "cjs"],
  ];

  test.each(esbuildCases)("by esbuild, %s [B45]", async (name, load, format, extension) => {
    const bundle = `esbuild ${name}.${extension}`;
    const source = await consumer.write(`${bundle}.source.js`, programs.takeAndGiveBack(load));
    await bundleByEsbuild(source, consumer.path(bundle), format);
    expect(await consumer.node(bundle, redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
  });

  test.each([
    ["es", "mjs"],
    ["cjs", "cjs"],
  ] as const)("by rollup, into %s", async (format, extension) => {
    const source = await consumer.write(`rollup-${format}.js`, programs.takeAndGiveBack(programs.IMPORT));
    const entry = consumer.path("node_modules/holdfast/dist/index.js");
    // Rollup does not resolve packages itself. Node resolves those that the bundle leaves outside.
    const resolve = {
      name: "resolve-holdfast",
      resolveId: (id: string): string | null => (id === "holdfast" ? entry : null),
    };
    const bundle = await rollup({
      input: source,
      external: /^(node:|ioredis$|eventemitter3$|nanoid$)/,
      plugins: [resolve],
    });
    await bundle.write({ file: consumer.path(`rollup.${extension}`), format });
    await bundle.close();
    expect(await consumer.node(`rollup.${extension}`, redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
  });
});

describe("bundling everything, for a folder without packages", () => {
  /** esbuild needs this banner to bundle a CommonJS package, such as ioredis, into an ES module. */
  const WITH_REQUIRE = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;

  test.each([
    ["an ES module", programs.IMPORT, "esm", "mjs", WITH_REQUIRE],
    ["CommonJS", programs.IMPORT, "cjs", "cjs", ""],
    ["CommonJS, by require", programs.REQUIRE, "cjs", "cjs", ""],
  ] as const)("connect finds ioredis in %s", async (name, load, format, extension, banner) => {
    const bare = await packed.install();
    const source = await consumer.write(`connect ${name}.js`, programs.takeAndGiveBack(load));
    await bundleByEsbuild(source, bare.path(`bundle.${extension}`), format, banner);
    expect(await bare.node(`bundle.${extension}`, redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
  });

  test("a program without ioredis is bundled all the same, and connect says what is missing", async () => {
    const bare = await packed.install();
    const source = await bare.write("source.js", programs.connectWithoutIoredis(programs.IMPORT));
    await bundleByEsbuild(source, bare.path("bundle.cjs"), "cjs");
    expect(await bare.node("bundle.cjs")).toMatch(/^function\n.*\bnpm install ioredis\n$/);
  });

  test("a connection that the program makes itself", async () => {
    const load = `import { Redis } from "ioredis";\n${programs.IMPORT}\nconst redis = new Redis(process.argv[2]);`;
    const program = programs
      .takeAndGiveBack(load, "new LockClient(redis)")
      .replace("main();", "main().finally(() => redis.disconnect());");
    const source = await consumer.write("whole.js", program);
    const bare = await packed.install();
    await bundleByEsbuild(source, bare.path("whole.cjs"), "cjs");
    expect(await bare.node("whole.cjs", redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
  });
});

async function bundleByEsbuild(source: string, outfile: string, format: Format, banner = ""): Promise<void> {
  await esbuild({
    entryPoints: [source],
    outfile,
    format,
    banner: { js: banner },
    bundle: true,
    platform: "node",
    target: "node20.5",
    logLevel: "error",
  });
}
