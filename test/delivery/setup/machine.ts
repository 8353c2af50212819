/**
 * An imitated machine for set-up: a clone in a temporary folder, and a PATH with only the programs that a row puts there.
 * These only write down their calls, so nothing is installed and no network is used.
 */
import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../../../tools/setup.mjs", import.meta.url));

export type Packages = Readonly<
  Record<string, { readonly version: string; readonly integrity: string; readonly optional?: boolean }>
>;

/** The lock file: one required and one optional package. */
export const LOCKED: Packages = {
  "node_modules/wanted": { version: "1.0.0", integrity: "sha512-a" },
  "node_modules/for-another-system": { version: "1.0.0", integrity: "sha512-b", optional: true },
};

/** `$BIN` in a script or a variable stands for the folder of the programs. */
export interface Machine {
  /** Programs on the PATH, each with what it does in sh after writing down its call. Default: npm alone. */
  readonly programs?: Readonly<Record<string, string>>;
  /** What npm has installed here. Default: all that the lock file asks for; null: nothing. */
  readonly installed?: Packages | null;
  readonly root?: boolean;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What a package manager does in sh to put a program on the PATH. */
export const putting = (name: string): string =>
  `echo '#!/bin/sh' > "$BIN/${name}" && /bin/chmod 755 "$BIN/${name}"`;

/** Runs set-up on the machine. `calls`: of the programs, in order. */
export async function setUp(machine: Machine): Promise<{ code: number; printed: string; calls: string[] }> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-setup-"));
  try {
    const bin = join(folder, "bin");
    await Promise.all(["bin", "tools"].map((name) => mkdir(join(folder, name))));
    await copyFile(SCRIPT, join(folder, "tools/setup.mjs"));
    await addPackages(folder, machine.installed === undefined ? LOCKED : machine.installed);
    for (const [name, script] of Object.entries({ npm: "", ...machine.programs })) {
      const text = `#!/bin/sh\nBIN='${bin}'\necho "${name} $*" >> '${folder}/calls.log'\n${script}\n`;
      await writeFile(join(bin, name), text);
      await chmod(join(bin, name), 0o755);
    }
    const given = Object.entries(machine.env ?? {}).map(([name, value]) => [
      name,
      value.replace("$BIN", bin),
    ]);
    // The tests run as root on some machines and not on others, so the user is imitated, too.
    const identity = `data:text/javascript,process.getuid=()=>${machine.root ? 0 : 1000}`;
    const args = ["--import", identity, join(folder, "tools/setup.mjs"), ...(machine.flags ?? [])];
    const env = { PATH: bin, ...Object.fromEntries(given) };
    const ended = await new Promise<{ code: number; printed: string }>((resolve) => {
      execFile(process.execPath, args, { env }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), printed: stdout + stderr });
      });
    });
    const log = await readFile(join(folder, "calls.log"), "utf8").catch(() => "");
    return { ...ended, calls: log.split("\n").filter((line) => line !== "") };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The lock file, and the list of installed packages that npm leaves behind. */
async function addPackages(folder: string, installed: Packages | null): Promise<void> {
  const lock = { packages: { "": {}, ...LOCKED } };
  await writeFile(join(folder, "package-lock.json"), JSON.stringify(lock));
  if (installed === null) return;
  await mkdir(join(folder, "node_modules"));
  const list = JSON.stringify({ packages: installed });
  await writeFile(join(folder, "node_modules/.package-lock.json"), list);
}
