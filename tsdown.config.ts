// Two outputs of one source: dist/index.js (ESM) and dist/index.cjs, each with its types and source map.
//
// nanoid is an ES module only, which `require` cannot load before Node 20.19 nor inside Jest; so the CJS file carries
// it. Everything else stays outside both: eventemitter3 has an ESM and a CJS form, ioredis is the user's.
import type { UserConfig } from "tsdown";

const common: UserConfig = {
  outDir: "dist",
  platform: "node",
  target: "node20.5",
  // The package is `"type": "module"`: .js and .d.ts are ESM, .cjs and .d.cts are CJS.
  fixedExtension: false,
  dts: { sourcemap: true },
  sourcemap: true,
  hash: false,
  failOnWarn: true,
};

const index: UserConfig = { ...common, entry: { index: "src/index.ts" } };

/** The entry points beside the root stand on its file of the same form, so that no class is there twice. */
function entries(format: "esm" | "cjs"): UserConfig {
  const root = format === "esm" ? "./index.js" : "./index.cjs";
  return {
    ...common,
    format,
    entry: ["src/entries/*.ts"],
    deps: { neverBundle: [], onlyBundle: [] },
    inputOptions: (options) => ({
      ...options,
      plugins: [
        {
          name: "root",
          resolveId: (id) => (id === "../index.js" ? { id: root, external: true } : null),
        },
        options.plugins,
      ],
    }),
  };
}

const builds: UserConfig[] = [
  { ...index, format: "esm", deps: { neverBundle: ["ioredis", "eventemitter3", "nanoid"], onlyBundle: [] } },
  {
    ...index,
    format: "cjs",
    deps: { neverBundle: ["ioredis", "eventemitter3"], alwaysBundle: ["nanoid"], onlyBundle: false },
  },
  entries("esm"),
  entries("cjs"),
];

export default builds;
