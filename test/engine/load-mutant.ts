/** The hand-over policy, or the queue that asks it, with a changed text; and the engine that uses it. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { compileFunction } from "node:vm";
import { build } from "esbuild";
import type { Mutant } from "./handoff-mutants.js";
import type { PolicyClass } from "./handoff-table.js";
import type { EngineClass } from "./processes.js";

const FOLDER = fileURLToPath(new URL("../../src/engine", import.meta.url));
const FILES = ["handoff-policy.ts", "wait-queue.ts"];
const ENTRY = `export { Engine } from "./engine.ts"; export { HandoffPolicy } from "./handoff-policy.ts";`;

export interface Mutated {
  readonly Engine: EngineClass;
  readonly HandoffPolicy: PolicyClass;
}

/** @throws if the text to replace does not stand exactly once, in one of the files */
export async function load([text, by]: Mutant): Promise<Mutated> {
  const sources = FILES.map((file) => ({ file, source: readFileSync(`${FOLDER}/${file}`, "utf8") }));
  const found = sources.filter(({ source }) => source.includes(text));
  const [place] = found;
  if (!place || found.length > 1 || place.source.split(text).length > 2)
    throw new Error(`stands not once in ${FILES.join(" and ")}: ${text}`);
  const contents = place.source.replace(text, () => by);
  const filter = new RegExp(`[\\\\/]${place.file.replace(".", "\\.")}$`);
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: FOLDER, loader: "ts" },
    bundle: true,
    format: "cjs",
    platform: "node",
    write: false,
    plugins: [
      {
        name: "mutant",
        setup: (hooks) => hooks.onLoad({ filter }, () => ({ contents, loader: "ts" })),
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
