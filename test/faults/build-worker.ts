/** Bundles a worker of this folder with the library's sources, because Node 20 runs no TypeScript. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll } from "vitest";

/** Bundles a module that exports `handlers` before the tests of this file run; the returned function tells its path. */
export function bundledWorker(file: string): () => string {
  let directory: string | undefined;
  const bundle = (): string => {
    if (directory === undefined) throw new Error("the worker has not been bundled yet");
    return join(directory, "worker.cjs");
  };
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "holdfast-worker-"));
    await build({
      stdin: {
        contents: `import { serve } from "../support/worker-child.mjs";
          import { handlers } from ${JSON.stringify(file)};
          serve(handlers);`,
        resolveDir: fileURLToPath(new URL(".", import.meta.url)),
      },
      outfile: bundle(),
      bundle: true,
      platform: "node",
      target: "node20",
      format: "cjs",
      logLevel: "warning",
    });
  });
  afterAll(async () => {
    if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  });
  return bundle;
}
