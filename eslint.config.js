// Biome lints everything else. The first two rules need types, and a promise that nobody waits for is the typical defect of
// a lock library: a release that is not awaited, a rejection that ends the process.
import tseslint from "typescript-eslint";

const PLATFORM = "Timers and clocks come from src/base/platform.ts.";
const TIMERS = [
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "queueMicrotask",
  "performance",
];
const TIME_MODULES = ["timers", "timers/promises", "perf_hooks", "process"].flatMap((name) => [
  name,
  `node:${name}`,
]);

export default [
  { ignores: ["dist/", "coverage/", "out/"] },
  {
    files: ["src/**/*.ts", "test/**/*.ts", "bench/**/*.ts"],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { project: "tsconfig.json", tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    plugins: { "@typescript-eslint": tseslint.plugin },
    rules: {
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": "error",
    },
  },
  {
    // What a test framework may replace by a fake after the import.
    files: ["src/**/*.ts"],
    ignores: ["src/base/platform.ts"],
    rules: {
      "no-restricted-globals": [
        "error",
        { globals: TIMERS.map((name) => ({ name, message: PLATFORM })), checkGlobalObject: true },
      ],
      "no-restricted-imports": ["error", ...TIME_MODULES.map((name) => ({ name, message: PLATFORM }))],
      "no-restricted-properties": [
        "error",
        ...["nextTick", "hrtime"].map((property) => ({ object: "process", property, message: PLATFORM })),
        { object: "Date", property: "now", message: PLATFORM },
      ],
      "no-restricted-syntax": [
        "error",
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: PLATFORM },
      ],
    },
  },
];
