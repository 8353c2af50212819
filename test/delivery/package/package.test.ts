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

/** Files that several entries share: they have no types. */
const SHARED = ["errors", "kinds", "platform"];

/** The package that an entry integrates with, and imports. */
const NEEDED: Readonly<Record<string, string>> = { nestjs: "@nestjs/common", otel: "@opentelemetry/api" };

const [redis, packed] = await Promise.all([forFile(startRedis()), forFile(PackedPackage.create())]);
/** A project with ioredis and the packages that entries need. Each test writes files of its own into it. */
const consumer = await packed.install("ioredis", ...Object.values(NEEDED));

describe("what is in the package", () => {
  test("both forms with types, the pages for users, examples and the license, and nothing else", () => {
    const names = ["index", ...ENTRIES];
    const built = [
      ...names.flatMap((name) => [`${name}.js`, `${name}.cjs`, `${name}.d.ts`, `${name}.d.cts`]),
      ...SHARED.flatMap((name) => [`${name}.js`, `${name}.cjs`]),
      ...["cli.js", "load-ioredis.cjs", "lua-vm.cjs", "third-party.txt"],
    ].map((file) => `dist/${file}`);
    expect(packed.files.filter((file) => file.startsWith("dist/")).sort()).toEqual(built.sort());
    const alone = packed.files.filter((file) => !file.includes("/"));
    const pages = ["CHANGELOG.md", "README.md", "SECURITY.md"];
    expect(alone.sort()).toEqual([...pages, "LICENSE", "package.json"].sort());
    expect(packed.files).not.toContain("docs/evidence.md");
    expect(packed.files.filter((file) => /(^|[/.])test[/.]|\.env|\.npmrc|\.pem|\.tgz/.test(file))).toEqual(
      [],
    );
    const folders = packed.files.filter((file) => file.includes("/")).map((file) => file.split("/")[0]);
    expect([...new Set(folders)].sort()).toEqual(["dist", "docs", "examples"]);
  });

  test("each page leads to what is in the package", () => {
    const pages = allPages().filter(({ file }) => packed.files.includes(file));
    const isPacked = (path: string) =>
      packed.files.some((file) => file === path || file.startsWith(`${path}/`));
    expect(pages.map(({ file }) => file)).toContain("docs/guide.md");
    expect(pages.flatMap((page) => linksOf(page).filter(({ file }) => !isPacked(file)))).toEqual([]);
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
    expect(await packagesOf("index.cjs", /\brequire\("([^"]+)"\)/g)).toEqual(["eventemitter3"]);
    expect(await packagesOf("index.js")).toEqual(["eventemitter3", "nanoid"]);
  });

  test("the root loads no entry, and an entry needs no package but the one that it is for", async () => {
    const own = (await importsOf("index.js")).filter((name) => name.startsWith("."));
    expect(own.sort()).toEqual(["./errors.js", "./load-ioredis.cjs"]);
    for (const entry of ENTRIES) {
      const packages = await packagesOf(`${entry}.js`);
      expect(packages.filter((name) => name !== NEEDED[entry])).toEqual([]);
    }
  });
});

describe("loading", () => {
  test.each([
    ["import", "take.mjs", programs.IMPORT],
    ["require", "take.cjs", programs.REQUIRE],
  ])(
    "by %s a lock is taken and given back, wherever an ES module can be required or not",
    async (_how, file, load) => {
      await consumer.write(file, programs.takeAndGiveBack(load));
      expect(await consumer.node(file, redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
      expect(await consumer.oldNode(file, redis.url)).toBe(programs.TAKEN_AND_GIVEN_BACK);
    },
  );

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
});

test.each([
  ["import", programs.IMPORT, "mjs"],
  ["require", programs.REQUIRE, "cjs"],
])("without ioredis %s works, and connect says what is missing", async (name, load, extension) => {
  const bare = await packed.install();
  await bare.write(`${name}.${extension}`, programs.connectWithoutIoredis(load));
  expect(await bare.node(`${name}.${extension}`)).toMatch(/^function\n.*\bioredis\b/);
});

async function importsOf(file: string, pattern = /\bfrom "([^"]+)"/g): Promise<string[]> {
  const source = await readFile(consumer.path(`node_modules/holdfast/dist/${file}`), "utf8");
  return Array.from(source.matchAll(pattern), ([, name = ""]) => name);
}

async function packagesOf(file: string, pattern?: RegExp): Promise<string[]> {
  const imported = await importsOf(file, pattern);
  return [...new Set(imported.filter((name) => !/^([.]|node:|url$)/.test(name)))].sort();
}
