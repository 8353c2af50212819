/** Runs the examples: those of the repository, or a copy that a test has changed. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const EXAMPLES = join(ROOT, "examples");

export interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Code and its replacement, in the example's own file unless `file` names another. */
export interface Change {
  readonly file?: string;
  readonly from: string;
  readonly to: string;
}

/** Runs an example to its end, in a copy after a change; a TypeScript file is translated first. */
export async function runExample(file: string, change?: Change): Promise<Ended> {
  if (!change && !file.endsWith(".ts")) return runFile(join(EXAMPLES, file));
  // Inside the package, so that the copy finds the library by its name.
  await mkdir(join(ROOT, "out"), { recursive: true });
  const copy = await mkdtemp(join(ROOT, "out", "examples-"));
  try {
    await cp(EXAMPLES, copy, { recursive: true });
    if (change) {
      const path = join(copy, change.file ?? file);
      const source = await readFile(path, "utf8");
      if (!source.includes(change.from)) throw new Error(`${file} has no ${change.from}`);
      await writeFile(
        path,
        source.replace(change.from, () => change.to),
      );
    }
    if (!file.endsWith(".ts")) return await runFile(join(copy, file));
    const source = await readFile(join(copy, file), "utf8");
    const { code } = await transform(source, { loader: "ts", target: "node20" });
    await writeFile(join(copy, `${file}.mjs`), code);
    return await runFile(join(copy, `${file}.mjs`));
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

function runFile(path: string): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [path], (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}
