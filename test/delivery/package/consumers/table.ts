/** The consumers of the package: each row is a project of its own that installs the tarball. */
import manifest from "../../../../package.json" with { type: "json" };
import { NODES, newestNode } from "../../../../tools/fetch-node.mjs";
import { allPages, blocksOf } from "../../docs/pages.js";
import * as programs from "../programs.js";
import { NEST } from "./nest.js";
import { TYPESCRIPT } from "./typescript.js";

export interface Row {
  readonly name: string;
  /** Packages beside holdfast, at exact versions. */
  readonly packages?: Readonly<Record<string, string>>;
  /** The Node version that runs the row. Default: the Node that runs the tests. */
  readonly node?: string | undefined;
  readonly type?: "module" | "commonjs";
  readonly files: Readonly<Record<string, string>>;
  /** `node` or a program of the project, with its arguments. Each must succeed. `REDIS_URL` names a server. */
  readonly commands: readonly (readonly [string, ...string[]])[];
  /** Paths to delete before the last command. */
  readonly remove?: readonly string[];
  /** The output of all commands together. Default: anything. */
  readonly prints?: string | RegExp;
  /** Why this row cannot be run. */
  readonly impossible?: string | undefined;
  /** Runs only with `npm run test:consumers`, even if all it needs is installed. */
  readonly long?: boolean;
}

const IOREDIS = { ioredis: manifest.devDependencies.ioredis };
const TAKE = programs.takeAndGiveBack(programs.IMPORT, "LockClient.connect(process.env.REDIS_URL)");
const TAKE_BY_REQUIRE = programs.takeAndGiveBack(
  programs.REQUIRE,
  "LockClient.connect(process.env.REDIS_URL)",
);

/** Both forms, each run by this program. */
const both = (name: string, run: readonly [string, ...string[]], more: Partial<Row> = {}): Row => ({
  ...more,
  name: `${name}: import and require`,
  packages: { ...IOREDIS, ...more.packages },
  files: { "take.mjs": TAKE, "take.cjs": TAKE_BY_REQUIRE },
  commands: ["take.mjs", "take.cjs"].map((file) => [...run, file] as const),
  prints: programs.TAKEN_AND_GIVEN_BACK.repeat(2),
});

const BUN = "node_modules/@oven/bun-linux-x64/bin/bun";
const DENO = "node_modules/@deno/linux-x64-glibc/deno";
const platforms: Row[] = [
  ...NODES.map((node) => both(`Node ${node}`, ["node"], { node })),
  both("Bun 1.4", [BUN], { packages: { bun: "1.4.5" } }),
  both("Deno 2.9", [DENO, "run", "-A", "--node-modules-dir=manual"], { packages: { deno: "2.9.6" } }),
];

/** The recipe of docs/testing.md for a test runner. */
function recipe(runner: string): string {
  const page = allPages().filter(({ file }) => file === "docs/testing.md");
  const [block, ...more] = page.flatMap(blocksOf).filter(({ code }) => code.includes(`from "${runner}"`));
  if (!block || more.length > 0) throw new Error(`docs/testing.md should have one recipe for ${runner}`);
  return block.code;
}

/** The code for Jest without Babel: as CommonJS, and with Jest's own functions as globals. */
function toCommonJs(code: string): string {
  return code
    .replace(/^import .* from "@jest\/globals";$/m, "")
    .replaceAll(/^import (.*) from (".*");$/gm, "const $1 = require($2);");
}

const jest = (node?: string): Row => ({
  name: `Jest 30${node ? ` on Node ${node}` : ""}: CommonJS, holdfast/testing under fake timers, and a server`,
  node,
  packages: { ...IOREDIS, jest: "30.5.2" },
  type: "commonjs",
  files: {
    "fakes.test.js": toCommonJs(recipe("@jest/globals")),
    "server.test.js": `${programs.REQUIRE}
test("takes and gives back", async () => {
  const client = LockClient.connect(process.env.REDIS_URL);
  const hold = await client.getLock("a").lock();
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
  await client.close();
});
`,
  },
  commands: [["node", "node_modules/jest/bin/jest.js"]],
});

const vitest = (version: string, node?: string): Row => ({
  name: `Vitest ${version}${node ? ` on Node ${node}` : ""}: holdfast/testing under fake timers, also as for Jest`,
  node,
  packages: { ...IOREDIS, vitest: version },
  files: {
    "fakes.test.mjs": recipe("vitest"),
    // Vitest's functions have the names of Jest's.
    "jest.test.mjs": recipe("@jest/globals").replace('"@jest/globals"', '"./jest-globals.mjs"'),
    "jest-globals.mjs": 'export * from "vitest"; export { vi as jest } from "vitest";',
  },
  commands: [["node", "node_modules/vitest/vitest.mjs", "run", "--no-color"]],
  prints: /Tests {2}2 passed/,
});

const nodeTest = (node?: string): Row => ({
  name: `node:test${node ? ` on Node ${node}` : ""}: holdfast/testing under fake timers`,
  node,
  packages: IOREDIS,
  files: { "fakes.test.mjs": recipe("node:test") },
  commands: [["node", "--test", "fakes.test.mjs"]],
  prints: /^. pass 1$/m,
});

const runners: Row[] = [
  jest(),
  jest(newestNode(24)),
  vitest(manifest.devDependencies.vitest),
  vitest("5.1.1", newestNode(24)),
  nodeTest(),
  nodeTest(newestNode(26)),
];

/** A row whose script bundles everything; the bundles run after the packages and sources are deleted. */
const bundled = (
  name: string,
  packages: Row["packages"],
  build: string,
  outputs: readonly string[],
): Row => ({
  name: `${name}: connect in a bundle`,
  packages: { ...IOREDIS, ...packages },
  files: {
    "source.mjs": TAKE,
    "build.mjs": build,
    "run.mjs": `import { execFileSync } from "node:child_process";
for (const file of ${JSON.stringify(outputs)}) execFileSync(process.execPath, [file], { stdio: "inherit" });
`,
  },
  commands: [
    ["node", "build.mjs"],
    ["node", "run.mjs"],
  ],
  remove: ["node_modules", "source.mjs"],
  prints: programs.TAKEN_AND_GIVEN_BACK.repeat(outputs.length),
});

const bundlers: Row[] = [
  bundled(
    "webpack 5",
    { webpack: "5.112.2" },
    `import webpack from "webpack";
const common = { mode: "production", target: "node20", entry: "./source.mjs", optimization: { minimize: false } };
const esm = { experiments: { outputModule: true } };
const output = { path: import.meta.dirname };
const module = { module: true, chunkFormat: "module", library: { type: "module" } };
webpack([
  { ...common, output: { ...output, filename: "out.cjs" } },
  { ...common, ...esm, output: { ...output, ...module, filename: "out.mjs" } },
], (error, stats) => {
  if (!error && !stats.hasErrors() && !stats.hasWarnings()) return;
  console.log(String(error ?? stats));
  process.exitCode = 1;
});
`,
    ["out.cjs", "out.mjs"],
  ),
  bundled(
    "Vite 8, of a server",
    { vite: "8.3.8" },
    `import { build } from "vite";
await build({
  logLevel: "warn",
  ssr: { noExternal: true },
  build: { ssr: "source.mjs", outDir: "out", emptyOutDir: true },
});
`,
    ["out/source.js"],
  ),
  bundled(
    "Bun",
    { bun: "1.4.5" },
    `import { execFileSync } from "node:child_process";
execFileSync("./${BUN}", ["build", "source.mjs", "--target=node", "--outfile=out.mjs"]);
`,
    ["out.mjs"],
  ),
];

/** Their versions are too old for the entries about them; the rest of the package has nothing to do with them. */
const besideOld: Row = {
  name: "beside redis 4, Fastify 4 and Express 4.19",
  packages: { ...IOREDIS, redis: "4.7.1", fastify: "4.29.1", express: "4.19.2" },
  files: {
    "take.mjs": TAKE,
    "old.mjs": `import fastify from "fastify";
import { fromNodeRedis } from "holdfast/node-redis";
import { lockPlugin } from "holdfast/http";
import { createTestClient } from "holdfast/testing";
import { createClient } from "redis";
try {
  fromNodeRedis(createClient());
} catch (error) {
  console.log(error.message.split("; ")[1]);
}
const { client } = createTestClient();
await fastify().register(lockPlugin, { client }).ready().catch((error) => console.log(error.message));
await client.close();
`,
  },
  commands: [
    ["node", "take.mjs"],
    ["node", "old.mjs"],
  ],
  prints: `${programs.TAKEN_AND_GIVEN_BACK}this is one of redis 4 or older
fastify-plugin: holdfast - expected '5.x' fastify version, '4.29.1' is installed
`,
};

export const ROWS: readonly Row[] = [
  ...platforms,
  besideOld,
  ...TYPESCRIPT,
  ...runners,
  ...bundlers,
  ...NEST,
];
