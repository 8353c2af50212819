// Biome lints everything else. These two rules need types, and a promise that nobody waits for is the typical defect of
// a lock library: a release that is not awaited, a rejection that ends the process.
import tseslint from "typescript-eslint";

export default [
  { ignores: ["dist/", "coverage/", "out/", "test/**/fixtures/"] },
  {
    files: ["src/**/*.ts", "test/**/*.ts", "bench/**/*.ts"],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    plugins: { "@typescript-eslint": tseslint.plugin },
    rules: {
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": "error",
    },
  },
];
