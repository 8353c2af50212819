/**
 * Projects that use the packed package as npm would install it: the tarball unpacked into node_modules, beside links to
 * the packages it needs; only `fetch` asks a registry.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PATIENCE } from "../support/patience.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const execute = promisify(execFile);

/** Runs a program to its end and gives what it printed; rejects with that and its errors when it fails. */
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
    // Only the texts: the error itself repeats them, with the environment's details.
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

  /** Packs what is built. */
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

  /** A project with the package and `packages`, the latter given as the names they have here. */
  async install(...packages: string[]): Promise<Consumer> {
    const consumer = await this.#consumer();
    const installed = consumer.path("node_modules/holdfast");
    await mkdir(installed, { recursive: true });
    await run("tar", ["-xzf", this.#tarball, "--strip-components=1", "-C", installed], installed);
    for (const name of ["eventemitter3", "nanoid", ...packages]) await consumer.link(name);
    return consumer;
  }

  /** A project for which npm has installed the package and `packages`, as it understands them. Runs no scripts of theirs. */
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

  /** Puts a package of this repository, or of the folder `from`, into the project. */
  async link(name: string, from: string = join(ROOT, "node_modules", name)): Promise<void> {
    const link = this.path(join("node_modules", name));
    await mkdir(dirname(link), { recursive: true });
    await symlink(from, link, "dir");
  }

  async run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
    return await run(program, args, this.folder, 100 * PATIENCE, env);
  }

  /** A program that does not end by itself is killed, and that is a failure: the package must not keep it alive. */
  async node(name: string, ...args: string[]): Promise<string> {
    return await run(process.execPath, [this.path(name), ...args], this.folder, 15_000);
  }

  /** As a Node that cannot `require` an ES module, which is every one before 20.19. */
  async oldNode(name: string, ...args: string[]): Promise<string> {
    const flag = "--no-experimental-require-module";
    const flags = process.allowedNodeEnvironmentFlags.has("--experimental-require-module") ? [flag] : [];
    return await run(process.execPath, [...flags, this.path(name), ...args], this.folder, 15_000);
  }

  /** What the compiler in that folder, else the one of this repository, says of the project. */
  async tsc(compiler: string = join(ROOT, "node_modules/typescript")): Promise<string> {
    return await run(process.execPath, [join(compiler, "bin/tsc"), "-p", "."], this.folder);
  }
}
