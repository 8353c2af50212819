/**
 * A realm for the library, like the one that Jest makes for each test file: it has its own globals and a copy of
 * `process`. A test may replace any of these by a fake, while Node itself goes on with the real ones.
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { compileFunction, createContext } from "node:vm";
import { build } from "esbuild";
import type * as library from "../../../src/index.js";

const GIVEN = [
  "AbortController",
  "AbortSignal",
  "Buffer",
  "URL",
  "clearImmediate",
  "clearInterval",
  "clearTimeout",
  "console",
  "crypto",
  "performance",
  "queueMicrotask",
  "setImmediate",
  "setInterval",
  "setTimeout",
] as const;

const require = createRequire(import.meta.url);
/** The bundles, by entry. */
const bundles = new Map<string, Promise<string>>();

async function bundle(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`../../../src/${entry}`, import.meta.url))],
    bundle: true,
    platform: "node",
    target: "node20",
    format: "cjs",
    write: false,
    logLevel: "error",
    logOverride: { "empty-import-meta": "silent" },
  });
  return outputFiles[0]?.text ?? "";
}

export class Sandbox {
  readonly #process: { nextTick: unknown } = Object.assign(Object.create(process), {
    getBuiltinModule: (id: string) => this.#load(id),
  });
  readonly #globals: Record<string, unknown> = createContext({
    ...Object.fromEntries(GIVEN.map((name) => [name, globalThis[name]])),
    process: this.#process,
  });

  constructor() {
    this.#globals.global = this.#globals;
  }

  /** Installs fakes that stand still: scheduled callbacks never run. */
  freeze(): void {
    const never = (): { unref(): void } => ({ unref() {} });
    const at = Date.now();
    class FrozenDate extends Date {
      static override now(): number {
        return at;
      }
    }
    for (const name of GIVEN) if (/^(set|clear|queue)/.test(name)) this.#globals[name] = never;
    this.#globals.performance = { now: () => at };
    this.#globals.Date = FrozenDate;
    this.#process.nextTick = never;
  }

  /** Loads the library, or an entry beside it with its part of the library, into the realm. */
  async load<Exports = typeof library>(entry = "index.ts"): Promise<Exports> {
    const code = bundles.get(entry) ?? bundle(entry);
    bundles.set(entry, code);
    const exports = {};
    const module = { exports };
    const parsingContext = this.#globals as ReturnType<typeof createContext>;
    const run = compileFunction(await code, ["require", "module", "exports", "__filename"], {
      parsingContext,
    });
    run((id: string) => this.#load(id), module, exports, import.meta.filename);
    return module.exports as Exports;
  }

  #load(id: string): unknown {
    return /^(node:)?process$/.test(id) ? this.#process : require(id);
  }
}
