/** The hand-over policy with another text, and the engine that goes with it. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { compileFunction } from "node:vm";
import { build } from "esbuild";
import type { Mutant } from "./handoff-mutants.js";
import type { PolicyClass } from "./handoff-table.js";
import type { EngineClass } from "./processes.js";

const FOLDER = fileURLToPath(new URL("../../src/engine", import.meta.url));
const SOURCE = readFileSync(`${FOLDER}/handoff-policy.ts`, "utf8");
const ENTRY = `export { Engine } from "./engine.ts"; export { HandoffPolicy } from "./handoff-policy.ts";`;

export interface Mutated {
  readonly Engine: EngineClass;
  readonly HandoffPolicy: PolicyClass;
}

/** @throws if what is to be replaced does not stand in the file exactly once */
export async function load([text, by]: Mutant): Promise<Mutated> {
  const found = SOURCE.split(text).length - 1;
  if (found !== 1) throw new Error(`stands ${found} times in handoff-policy.ts, not once: ${text}`);
  const contents = SOURCE.replace(text, () => by);
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: FOLDER, loader: "ts" },
    bundle: true,
    format: "cjs",
    platform: "node",
    write: false,
    plugins: [
      {
        name: "mutant",
        setup: (hooks) =>
          hooks.onLoad({ filter: /[\\/]handoff-policy\.ts$/ }, () => ({ contents, loader: "ts" })),
      },
    ],
  });
  const code = outputFiles[0]?.text ?? "";
  const module = { exports: {} };
  compileFunction(code, ["module", "exports", "require"])(
    module,
    module.exports,
    createRequire(import.meta.url),
  );
  return module.exports as Mutated;
}
