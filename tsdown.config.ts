// Two outputs of one source: dist/index.js (ESM) and dist/index.cjs. Both load ioredis by one file next to them.
//
// Neither maps nor sources go into the package: they were two thirds of it. The output keeps its names and lines, so a
// stack trace can be read without them.
//
// The types are declared once, in index.d.cts, and index.d.ts leads there: a class with private members is declared as
// often as it has a file, and the compiler takes no instance of the one for the other. It is that way round because
// CommonJS may not always import an ES module.
//
// nanoid is an ES module only, which `require` cannot load before Node 20.19 nor inside Jest; so the CJS file carries
// it. Everything else stays outside both: eventemitter3 has an ESM and a CJS form, ioredis is the user's.
import type { UserConfig } from "tsdown";

/** Without doc comments, since each process that starts parses the files. They are in the types and in the source. */
const OUTPUT = { comments: { jsdoc: false } } as const;

const common: UserConfig = {
  outDir: "dist",
  platform: "node",
  target: "node20.5",
  // The package is `"type": "module"`: .js and .d.ts are ESM, .cjs and .d.cts are CJS.
  fixedExtension: false,
  sourcemap: false,
  hash: false,
  failOnWarn: true,
  inputOptions: withoutTimings,
  outputOptions: OUTPUT,
};

/** On a busy machine every plugin is slow, and no fault of the build. */
function withoutTimings<T extends object>(options: T): T & { checks: { pluginTimings: false } } {
  return { ...options, checks: { pluginTimings: false } };
}

/** How modules of src/entries and of its folders name the root. */
const ROOT = /^(\.\.\/)+index\.js$/;

type Plugins = UserConfig["plugins"];

/** The default exports, by their named ones: an ES module sees as CommonJS's default the whole module. */
const DEFAULTS: Readonly<Record<string, string>> = { redlock: "Redlock" };

/** Writes the types of an ES module, which are those of the CommonJS file beside it. */
const sameTypes: Plugins = {
  name: "same-types",
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk" || !chunk.isEntry) continue;
      const from = `from "./${chunk.name}.cjs";\n`;
      const named = DEFAULTS[chunk.name];
      if (chunk.exports.includes("default") !== (named !== undefined))
        this.error(`${chunk.name}: its default export and DEFAULTS do not agree`);
      const source = `export * ${from}${named === undefined ? "" : `export { ${named} as default } ${from}`}`;
      this.emitFile({ type: "asset", fileName: `${chunk.name}.d.ts`, source });
    }
  },
};

const FORMS = {
  esm: { format: "esm", dts: false, plugins: sameTypes },
  cjs: { format: "cjs", dts: { sourcemap: false } },
} as const satisfies Record<string, UserConfig>;

type Format = keyof typeof FORMS;

/** Stands on files that are built already, so that no class is there twice. */
function standingOn(
  fileOf: (id: string, importer: string) => string | undefined,
  plugins: Plugins = [],
): UserConfig {
  return {
    ...common,
    deps: { neverBundle: ["ioredis"], onlyBundle: [] },
    inputOptions: (options) => ({
      ...withoutTimings(options),
      plugins: [
        {
          name: "built already",
          resolveId: (id, importer = "") => {
            const file = fileOf(id, importer);
            return file === undefined ? null : { id: file, external: true };
          },
        },
        plugins,
        options.plugins,
      ],
    }),
  };
}

/** How src/redis/connect.ts names the file that stays CommonJS in both forms, and so is copied as it is. */
const LOADER = "./load-ioredis.cjs";

/**
 * Whether this is src/base/errors.ts, which is a file of its own: an entry that only tells errors apart does not load the
 * whole core. Its types stay in those of the root.
 */
function isErrors(id: string, importer: string): boolean {
  if (/[.]d[.][cm]?ts$/.test(importer)) return false;
  return id.endsWith("/base/errors.js") || (id === "./errors.js" && importer.includes("/src/base/"));
}

const fileIn = (format: Format, name: string): string => `./${name}.${format === "esm" ? "js" : "cjs"}`;

function errors(format: Format): UserConfig {
  return { ...common, format, dts: false, entry: { errors: "src/base/errors.ts" } };
}

function index(format: Format): UserConfig {
  return {
    ...standingOn((id, importer) => {
      if (id === LOADER) return LOADER;
      return isErrors(id, importer) ? fileIn(format, "errors") : undefined;
    }),
    ...FORMS[format],
    entry: { index: "src/index.ts" },
    copy: "src/redis/load-ioredis.cjs",
  };
}

function onRoot(format: Format, plugins?: Plugins): UserConfig {
  const fileOf = (id: string, importer: string): string | undefined => {
    if (ROOT.test(id)) return fileIn(format, "index");
    if (isErrors(id, importer)) return fileIn(format, "errors");
    return id === VM ? "./lua-vm.cjs" : undefined;
  };
  return { ...standingOn(fileOf, plugins), ...FORMS[format] };
}

/** The entry points beside the root, each standing on the root's file of the same form. */
function entries(format: Format): UserConfig {
  return {
    ...onRoot(format),
    entry: ["src/entries/*.ts", "!src/entries/{cli,testing}.ts"],
    // One of them has a default export beside its named ones.
    outputOptions: { ...OUTPUT, exports: "named" },
  };
}

/** How src/entries/testing/lua.ts names the file with fengari. */
const VM = "./lua-vm.js";

/**
 * `holdfast/testing` carries its Lua, so that its users install nothing for it: once for both forms. It is none of our
 * code, so nobody reads it in a stack trace, and it is written without blanks.
 */
const vm: UserConfig = {
  ...common,
  format: "cjs",
  dts: false,
  entry: { "lua-vm": "src/entries/testing/lua-vm.ts" },
  deps: { neverBundle: [], onlyBundle: ["fengari", "sprintf-js"] },
  copy: "src/entries/testing/third-party.txt",
  plugins: {
    // All that its modules use of the list of Lua's libraries; those of files and processes stay out.
    name: "lua-without-files",
    resolveId: (id: string) => (/^(\.|fengari\/src)\/lualib\.js$/.test(id) ? "\0lualib" : null),
    load: (id: string) => (id === "\0lualib" ? "exports.lua_assert = () => {};" : null),
  },
  minify: { compress: true, mangle: true, codegen: true },
};

function testing(format: Format): UserConfig {
  return { ...onRoot(format), entry: ["src/entries/testing.ts"] };
}

/** Node starts it by itself: one form, and no types. */
const program: UserConfig = {
  ...standingOn((id, importer) => {
    if (id === "../inspector.js") return "./inspector.js";
    if (isErrors(id, importer)) return "./errors.js";
    return ROOT.test(id) ? "./index.js" : undefined;
  }),
  format: "esm",
  entry: { cli: "src/entries/cli.ts" },
  dts: false,
};

const builds: UserConfig[] = [
  errors("esm"),
  errors("cjs"),
  { ...index("esm"), deps: { neverBundle: ["ioredis", "eventemitter3", "nanoid"], onlyBundle: [] } },
  {
    ...index("cjs"),
    deps: { neverBundle: ["ioredis", "eventemitter3"], alwaysBundle: ["nanoid"], onlyBundle: false },
  },
  entries("esm"),
  entries("cjs"),
  vm,
  testing("esm"),
  testing("cjs"),
  program,
];

export default builds;
