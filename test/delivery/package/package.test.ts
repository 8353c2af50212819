/** The package as users get it: packed, unpacked elsewhere, and loaded in every promised way. */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import { forFile, startRedis } from "../../support/index.js";
import { allPages, linksOf } from "../docs/pages.js";
import { PackedPackage } from "./consumer.js";
import * as programs from "./programs.js";

/** The entries in `exports` beside the root. */
const ENTRIES = Object.keys(manifest.exports)
  .filter((path) => !/^[.]$|[.]json$/.test(path))
  .map((path) => path.slice("./".length));

/** Files that several entries share, beside the root: they have no types. */
const SHARED = ["platform"];

/** The package that an entry integrates with, and imports. */
const NEEDED: Readonly<Record<string, string>> = { nestjs: "@nestjs/common", otel: "@opentelemetry/api" };

const [redis, packed] = await Promise.all([forFile(startRedis()), forFile(PackedPackage.create())]);
/** A project with ioredis and the packages that entries need. Each test writes files of its own into it. */
const consumer = await packed.install("ioredis", ...Object.values(NEEDED));

describe("what is in the package", () => {
  test("both forms with types and maps, their sources, the scripts, pages, examples and the license, and nothing else", () => {
    const names = ["index", ...ENTRIES];
    const built = names.flatMap((entry) =>
      ["js", "cjs", "d.cts"].flatMap((end) => [`dist/${entry}.${end}`, `dist/${entry}.${end}.map`]),
    );
    // The types of the ES modules only lead to those of CommonJS.
    built.push(...names.map((entry) => `dist/${entry}.d.ts`));
    const shared = SHARED.flatMap((name) =>
      ["js", "cjs"].flatMap((end) => [`dist/${name}.${end}`, `dist/${name}.${end}.map`]),
    );
    built.push("dist/cli.js", "dist/cli.js.map", "dist/load-ioredis.cjs", ...shared);
    expect(packed.files.filter((file) => file.startsWith("dist/")).sort()).toEqual(built.sort());
    expect(packed.files).toContain("src/index.ts");
    const alone = packed.files.filter((file) => !file.includes("/"));
    const pages = [
      "ARCHITECTURE.md",
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "LICENSE",
      "README.md",
      "SECURITY.md",
    ];
    expect(alone.sort()).toEqual([...pages, "package.json"]);
    expect(packed.files.filter((file) => /^bench\/.*(?<!\.svg)$/.test(file)).sort()).toEqual([
      "bench/README.md",
      "bench/results/tables.md",
    ]);
    expect(packed.files.filter((file) => /(^|[/.])test[/.]|\.env|\.npmrc|\.pem|\.tgz/.test(file))).toEqual(
      [],
    );
    const folders = new Set(
      packed.files.filter((file) => file.includes("/")).map((file) => file.split("/")[0]),
    );
    expect([...folders].sort()).toEqual(["bench", "dist", "docs", "examples", "lua", "src"]);
  });

  test("each page leads to what is in the package", () => {
    const pages = allPages().filter(({ file }) => packed.files.includes(file));
    expect(pages.map(({ file }) => file)).toEqual(
      expect.arrayContaining(["docs/guide.md", "CONTRIBUTING.md"]),
    );
    const dead = pages.flatMap((page) => linksOf(page).filter(({ file }) => !isPacked(file)));
    expect(dead).toEqual([]);
  });

  test("no version of what is never imported stands in the way of an installation [B269]", () => {
    // npm refuses to install the package beside a version that it does not name, also for those who never use that entry.
    const { ioredis: _always, ...optional } = manifest.peerDependencies;
    const imported = Object.values(NEEDED);
    for (const [name, range] of Object.entries(optional)) {
      expect(manifest.peerDependenciesMeta[name as keyof typeof optional]).toEqual({ optional: true });
      if (!imported.includes(name)) expect([name, range]).toEqual([name, "*"]);
    }
  });

  test("the CJS file carries nanoid, the ESM file imports it", async () => {
    const read = (name: string) => readFile(consumer.path(`node_modules/holdfast/dist/${name}`), "utf8");
    const [esm, cjs] = await Promise.all([read("index.js"), read("index.cjs")]);
    const required = [...cjs.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name]) => name);
    const imported = [...esm.matchAll(/\bfrom "([^"]+)"/g)].map(([, name]) => name);
    expect(packagesAmong(required)).toEqual(["eventemitter3"]);
    expect(packagesAmong(imported)).toEqual(["eventemitter3", "nanoid"]);
  });
});

describe("loading", () => {
  test("by import", async () => {
    await consumer.write("import.mjs", programs.takeAndGiveBack(programs.IMPORT));
    expect(await consumer.node("import.mjs", redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
  });

  test("by require", async () => {
    await consumer.write("require.cjs", programs.takeAndGiveBack(programs.REQUIRE));
    expect(await consumer.node("require.cjs", redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
  });

  test("by require, where an ES module cannot be required", async () => {
    await consumer.write("old.cjs", programs.takeAndGiveBack(programs.REQUIRE));
    expect(await consumer.oldNode("old.cjs", redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
  });

  test("import and require give one and the same class", async (context) => {
    const { require_module } = process.features as { require_module?: boolean };
    if (!require_module) context.skip("needs a Node that can require an ES module (20.19 or later)");
    await consumer.write("same.mjs", programs.SAME_CLASS);
    expect(await consumer.node("same.mjs")).toBe("true\n");
  });

  test.each([
    ["import", programs.entries(programs.IMPORT_ALL, ENTRIES), "mjs"],
    ["require", programs.entries(programs.REQUIRE_ALL, ENTRIES), "cjs"],
  ])(
    "each entry by %s has the classes of the root, wherever an ES module can be required or not",
    async (name, program, end) => {
      await consumer.write(`entries-${name}.${end}`, program);
      const told = "WAIT_TIMEOUT 409 true\n";
      expect(await consumer.node(`entries-${name}.${end}`)).toBe(told);
      expect(await consumer.oldNode(`entries-${name}.${end}`)).toBe(told);
    },
  );

  test("the root loads no entry, and an entry needs no package but the one that it is for", async () => {
    const read = (entry: string) => readFile(consumer.path(`node_modules/holdfast/dist/${entry}.js`), "utf8");
    expect([...(await read("index")).matchAll(/\bfrom "([.][^"]+)"/g)].map(([, name]) => name)).toEqual([
      "./load-ioredis.cjs",
    ]);
    for (const entry of ENTRIES) {
      const imported = [...(await read(entry)).matchAll(/\bfrom "([^"]+)"/g)].map(([, name]) => name);
      const packages = packagesAmong(imported);
      expect(packages.filter((name) => name !== NEEDED[entry])).toEqual([]);
    }
  });

  test("isLockError knows the errors of another copy", async () => {
    await consumer.write("copies.mjs", programs.TWO_COPIES);
    expect(await consumer.node("copies.mjs", redis.url)).toBe("true false\ntrue true false\n");
  });
});

describe("without ioredis", () => {
  test.each([
    ["import", programs.IMPORT, "mjs"],
    ["require", programs.REQUIRE, "cjs"],
  ])("%s works, and connect says what is missing", async (name, load, extension) => {
    const bare = await packed.install();
    await bare.write(`${name}.${extension}`, programs.connectWithoutIoredis(load));
    const [loaded, message] = (await bare.node(`${name}.${extension}`)).split("\n");
    expect(loaded).toBe("function");
    expect(message).toMatch(/\bioredis\b/);
  });
});

/** Whether the package has this file, or a file in this folder. */
function isPacked(path: string): boolean {
  return packed.files.some((file) => file === path || file.startsWith(`${path}/`));
}

function packagesAmong(names: readonly (string | undefined)[]): string[] {
  const packages = names.filter((name) => name !== undefined && !/^([.]|node:|url$)/.test(name));
  return [...new Set(packages as string[])].sort();
}
