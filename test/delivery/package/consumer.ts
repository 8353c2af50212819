/**
 * Projects here use the packed package as npm would install it. Their node_modules holds the unpacked tarball, next to
 * links to the packages it needs. Only `fetch` asks a registry.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PATIENCE } from "../../support/patience.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const execute = promisify(execFile);

/** Runs a program to its end and returns its output; rejects with the output and the errors if it fails. */
async function run(
  program: string,
  args: readonly string[],
  cwd: string,
  timeout = 15 * PATIENCE,
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  try {
    return (await execute(program, args, { cwd, timeout, env: { ...process.env, ...env } })).stdout;
  } catch (error) {
    // Only the texts: the error itself repeats them together with the environment.
    const { message, stdout } = error as Error & { stdout: string };
    throw new Error(`${message}\n${stdout}`);
  }
}

export class PackedPackage {
  readonly files: readonly string[];
  readonly #folder: string;
  readonly #tarball: string;
  #consumers = 0;

  private constructor(folder: string, tarball: string, files: readonly string[]) {
    this.#folder = folder;
    this.#tarball = tarball;
    this.files = files;
  }

  /** Packs dist/ as it was built. */
  static async create(): Promise<PackedPackage> {
    if (!existsSync(join(ROOT, "dist/index.js")))
      throw new Error("dist/ is missing: run `npm run build` first");
    const folder = await realpath(await mkdtemp(join(tmpdir(), "holdfast-package-")));
    const output = await run("npm", ["pack", "--json", "--silent", "--pack-destination", folder], ROOT);
    const [packed] = JSON.parse(output) as [{ filename: string; files: { path: string }[] }];
    return new PackedPackage(
      folder,
      join(folder, packed.filename),
      packed.files.map(({ path }) => path),
    );
  }

  /** A project with the package and with links to `packages`, by their names in this repository. */
  async install(...packages: string[]): Promise<Consumer> {
    const consumer = await this.#consumer();
    const installed = consumer.path("node_modules/holdfast");
    await mkdir(installed, { recursive: true });
    await run("tar", ["-xzf", this.#tarball, "--strip-components=1", "-C", installed], installed);
    for (const name of ["eventemitter3", "nanoid", ...packages]) await consumer.link(name);
    return consumer;
  }

  /** A project for which npm installs the package and `packages`, given as npm takes them. No install script runs. */
  async fetch(packages: readonly string[]): Promise<Consumer> {
    const consumer = await this.#consumer();
    const args = ["install", "--engine-strict=false", "--ignore-scripts", "--no-audit", "--no-fund"];
    await run("npm", [...args, this.#tarball, ...packages], consumer.folder, 100 * PATIENCE);
    return consumer;
  }

  async #consumer(): Promise<Consumer> {
    this.#consumers += 1;
    const folder = join(this.#folder, `consumer-${this.#consumers}`);
    await mkdir(folder);
    const consumer = new Consumer(folder);
    await consumer.write("package.json", JSON.stringify({ type: "module" }));
    return consumer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export class Consumer {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  async write(name: string, source: string): Promise<string> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await writeFile(this.path(name), source);
    return this.path(name);
  }

  async delete(name: string): Promise<void> {
    await rm(this.path(name), { recursive: true });
  }

  /** Links a package of this repository, or of the folder `from`, into the project. */
  async link(name: string, from: string = join(ROOT, "node_modules", name)): Promise<void> {
    const link = this.path(join("node_modules", name));
    await mkdir(dirname(link), { recursive: true });
    await symlink(from, link, "dir");
  }

  async run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
    return await run(program, args, this.folder, 100 * PATIENCE, env);
  }

  /**
   * Runs a program that must end by itself: it is killed after 15 s, and fails, because the package must not keep it
   * alive.
   */
  async node(name: string, ...args: string[]): Promise<string> {
    return await run(process.execPath, [this.path(name), ...args], this.folder, 15_000);
  }

  /** Runs a program as on Node before 20.19, which cannot `require` an ES module. */
  async oldNode(name: string, ...args: string[]): Promise<string> {
    const flag = "--no-experimental-require-module";
    const flags = process.allowedNodeEnvironmentFlags.has("--experimental-require-module") ? [flag] : [];
    return await run(process.execPath, [...flags, this.path(name), ...args], this.folder, 15_000);
  }
}
