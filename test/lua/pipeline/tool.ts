import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const TOOL = fileURLToPath(new URL("../../../tools/lua.mjs", import.meta.url));
export const GENERATED = "src/scripts/generated.ts";

/** Runs the tool on a folder, as `npm run lua` does. */
export function runTool(root: string, ...options: string[]): { status: number | null; errors: string } {
  const { status, stderr } = spawnSync(process.execPath, [TOOL, "--root", root, ...options], {
    encoding: "utf8",
  });
  return { status, errors: stderr };
}

/** A temporary folder that looks like a checkout; deleted by `dispose`. */
export class TempRoot {
  readonly path: string = mkdtempSync(join(tmpdir(), "holdfast-lua-"));

  write(files: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(files)) {
      const file = join(this.path, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  }

  read(name: string): string {
    return readFileSync(join(this.path, name), "utf8");
  }

  dispose(): void {
    rmSync(this.path, { recursive: true });
  }
}
