/**
 * An imitated machine for set-up: a clone in a temporary folder, and a PATH with only the programs that a test puts
 * there. These only write down their calls, so nothing is installed and no network is used.
 */
import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../../../tools/setup.mjs", import.meta.url));
const ROOT_ID = 0;
const USER_ID = 1000;

interface Entry {
  readonly version: string;
  readonly integrity: string;
  readonly optional?: boolean;
}

/** One required and one optional package. */
export const LOCKED: Readonly<Record<string, Entry>> = {
  "node_modules/wanted": { version: "1.0.0", integrity: "sha512-a" },
  "node_modules/for-another-system": { version: "1.0.0", integrity: "sha512-b", optional: true },
};

export interface Outcome {
  readonly code: number;
  readonly printed: string;
  /** The calls of the programs, in order. */
  readonly calls: readonly string[];
}

export class Machine {
  readonly folder: string;
  readonly bin: string;
  readonly #log: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.bin = join(folder, "bin");
    this.#log = join(folder, "calls.log");
  }

  static async create(): Promise<Machine> {
    const machine = new Machine(await mkdtemp(join(tmpdir(), "holdfast-setup-")));
    await mkdir(machine.bin);
    await mkdir(join(machine.folder, "tools"));
    await copyFile(SCRIPT, join(machine.folder, "tools/setup.mjs"));
    await machine.lock();
    await machine.addProgram("npm");
    return machine;
  }

  /** Puts a program on the PATH; `script` is what it does, in sh, after writing down its call. */
  async addProgram(name: string, script = ""): Promise<string> {
    const path = join(this.bin, name);
    await writeFile(path, `#!/bin/sh\necho "${name} $*" >> '${this.#log}'\n${script}\n`);
    await chmod(path, 0o755);
    return path;
  }

  /** A line of sh by which the imitation of a package manager puts a program on the PATH. */
  putting(name: string): string {
    const path = join(this.bin, name);
    return `echo '#!/bin/sh' > '${path}' && /bin/chmod 755 '${path}'`;
  }

  /** Puts the lock file into a folder of the clone. */
  async lock(folder = ""): Promise<void> {
    await mkdir(join(this.folder, folder), { recursive: true });
    await this.#write(join(folder, "package-lock.json"), { packages: { "": {}, ...LOCKED } });
  }

  /** Writes the list of installed packages that npm leaves behind. */
  async setInstalled(packages: Readonly<Record<string, Entry>>, folder = ""): Promise<void> {
    await mkdir(join(this.folder, folder, "node_modules"), { recursive: true });
    await this.#write(join(folder, "node_modules/.package-lock.json"), { packages });
  }

  async setUp(
    flags: readonly string[] = [],
    { root = false, env = {} }: { root?: boolean; env?: Record<string, string> } = {},
  ): Promise<Outcome> {
    // The tests run as root on some machines and not on others, so the user is imitated, too.
    const identity = `data:text/javascript,process.getuid=()=>${root ? ROOT_ID : USER_ID}`;
    const args = ["--import", identity, join(this.folder, "tools/setup.mjs"), ...flags];
    return await new Promise((resolve) => {
      execFile(process.execPath, args, { env: { PATH: this.bin, ...env } }, (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code);
        void this.#calls().then((calls) => resolve({ code, printed: stdout + stderr, calls }));
      });
    });
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  async #calls(): Promise<string[]> {
    const log = await readFile(this.#log, "utf8").catch(() => "");
    return log.split("\n").filter((line) => line !== "");
  }

  async #write(name: string, content: unknown): Promise<void> {
    await writeFile(join(this.folder, name), JSON.stringify(content));
  }
}
