// Two outputs of one source: dist/index.js (ESM) and dist/index.cjs, each with its types and source map.
//
// nanoid is an ES module only, which `require` cannot load before Node 20.19 nor inside Jest; so the CJS file carries
// it. Everything else stays outside both: eventemitter3 has an ESM and a CJS form, ioredis is the user's.
import type { UserConfig } from "tsdown";

const common: UserConfig = {
  entry: { index: "src/index.ts" },
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

const builds: UserConfig[] = [
  { ...common, format: "esm", deps: { neverBundle: ["ioredis", "eventemitter3", "nanoid"], onlyBundle: [] } },
  {
    ...common,
    format: "cjs",
    deps: { neverBundle: ["ioredis", "eventemitter3"], alwaysBundle: ["nanoid"], onlyBundle: false },
  },
];

export default builds;
