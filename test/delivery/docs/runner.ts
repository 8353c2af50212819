/**
 * Runs blocks as a reader would: each is a module in a process of its own, with real servers. The names that a page
 * takes for granted come from sandbox/names.ts, as globals; a name that is missing ends the block.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import {
  PATIENCE,
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  startCluster,
  startRedis,
  startSentinel,
} from "../../support/index.js";
import { own } from "../../support/owned-processes.js";
import { versionFolder } from "../package/versions/install.js";
import { withChecks } from "./claims.js";
import { type Block, ROOT } from "./pages.js";
import type { Servers } from "./sandbox/servers.js";

const MASTERS = 3;
/** Packages whose connections go to the test's servers. */
const CLIENTS = ["ioredis", "iovalkey", "redis"];
/** Packages that only pages use: no dependencies of this package, but installed in test/delivery/package/versions. */
const ELSEWHERE = ["bullmq"];
const SANDBOX = join(ROOT, "test/delivery/docs/sandbox");
/** The address of a reader's own server. */
const HOME = "redis://localhost:6379";
const LONGEST_RUN = 2 * PATIENCE;
/** The password of the servers behind the sentinels. */
const PASSWORD = "secret";

export class BlockRunner {
  readonly #folder: string;
  readonly #masters: readonly RedisServer[];
  #sentinel: RedisSentinel | undefined;
  #cluster: RedisCluster | undefined;
  #count = 0;

  private constructor(folder: string, masters: readonly RedisServer[]) {
    this.#folder = folder;
    this.#masters = masters;
  }

  static async start(): Promise<BlockRunner> {
    if (!existsSync(join(ROOT, "dist/index.js")))
      throw new Error("dist/ is missing: run `npm run build` first");
    await mkdir(join(ROOT, "out"), { recursive: true });
    // Inside the package, so that a block finds the library by its name.
    const folder = await mkdtemp(join(ROOT, "out", "docs-"));
    await mkdir(join(folder, "node_modules"));
    for (const name of ELSEWHERE) await symlink(versionFolder(name), join(folder, "node_modules", name));
    const masters = await Promise.all(Array.from({ length: MASTERS }, () => startRedis()));
    await build({
      entryPoints: ["main.ts", ...CLIENTS.map((name) => `${name}.ts`)].map((file) => join(SANDBOX, file)),
      outdir: folder,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      splitting: true,
      format: "esm",
      platform: "node",
      packages: "external",
      plugins: [onePackage],
    });
    return new BlockRunner(folder, masters);
  }

  /** Runs a `js` or `ts` block. @throws with its place if it fails in any way, or takes longer than `timeout` */
  async run(block: Block, timeout: number = LONGEST_RUN): Promise<void> {
    await this.#clear();
    const file = join(this.#folder, `block-${++this.#count}.mjs`);
    await this.#transpile(block, file).catch((error: Error) => {
      throw failure(block, error.message);
    });
    const env = { ...process.env, HOLDFAST_DOCS_SERVERS: JSON.stringify(await this.#serversFor(block)) };
    // SIGKILL, because a block may handle SIGTERM in its own way.
    const options = { env, timeout, killSignal: "SIGKILL", cwd: ROOT } as const;
    const args = ["--enable-source-maps", join(this.#folder, "main.mjs"), file];
    await new Promise<void>((resolve, reject) => {
      const child = execFile(process.execPath, args, options, (error, stdout, stderr) => {
        if (!error) resolve();
        else if (error.killed) reject(failure(block, `it did not end within ${timeout} ms`));
        else reject(failure(block, stdout + stderr));
      });
      own(child);
    });
  }

  /** Sends the lines of a `redis` or `conf` block. */
  async send(block: Block): Promise<void> {
    await this.#clear();
    const [server] = this.#masters;
    for (const { command, line } of commandsOf(block)) {
      try {
        await server?.call(...(block.language === "conf" ? ["CONFIG", "SET", ...command] : command));
      } catch (error) {
        throw new Error(`${block.file}:${line}: ${(error as Error).message}`);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#masters, this.#sentinel, this.#cluster].map((server) => server?.stop()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** @throws the errors of the build, and claims that cannot be checked */
  async #transpile({ code, file, line }: Block, outfile: string): Promise<void> {
    // Empty lines before the block, so that every error shows the line of the page.
    const contents = "\n".repeat(line) + withChecks(code.replaceAll(HOME, this.#home), line + 1);
    await build({
      stdin: { contents, sourcefile: file, resolveDir: ROOT, loader: "ts" },
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20",
      packages: "external",
      sourcemap: "inline",
      logLevel: "silent",
      absWorkingDir: ROOT,
      plugins: [this.#sandboxed()],
    });
  }

  get #home(): string {
    const { host, port } = this.#masters[0] as RedisServer;
    return `redis://${host}:${port}`;
  }

  #sandboxed(): Plugin {
    return {
      name: "sandboxed",
      setup: ({ onResolve }) => {
        onResolve({ filter: new RegExp(`^(${CLIENTS.join("|")})$`) }, ({ path }) => {
          return { path: pathToFileURL(join(this.#folder, `${path}.mjs`)).href, external: true };
        });
      },
    };
  }

  async #serversFor({ code }: Block): Promise<Servers> {
    if (/\bsentinels\b|\bcreateSentinel\b/.test(code))
      this.#sentinel ??= await startSentinel({ password: PASSWORD });
    if (/\bnew Cluster\b|\bcreateCluster\b/.test(code)) this.#cluster ??= await startCluster();
    return {
      masters: this.#masters.map(({ port }) => port),
      sentinel: this.#sentinel?.clientOptions ?? {},
      password: PASSWORD,
      cluster: this.#cluster?.nodes.map(({ host, port }) => ({ host, port })) ?? [],
    };
  }

  async #clear(): Promise<void> {
    await Promise.all(this.#masters.map((server) => server.call("FLUSHALL")));
  }
}

/** Whether the block runs only if test/delivery/package/versions is installed. */
export function needsVersions({ code }: Block): boolean {
  return ELSEWHERE.some((name) => code.includes(`from "${name}"`));
}

/** The sandbox's names have the types of the sources, but come from the package, as the blocks' own imports do. */
const onePackage: Plugin = {
  name: "one package",
  setup({ onResolve }) {
    onResolve({ filter: /\/src\/index\.js$/ }, () => ({ path: "holdfast", external: true }));
  },
};

/** The commands of a block. An indented line continues the line before; a line with # is a comment. */
export function commandsOf({ code, line: fence }: Block): { command: string[]; line: number }[] {
  const commands: { command: string[]; line: number }[] = [];
  for (const [index, text] of code.split("\n").entries()) {
    const words = text.replace(/(^|\s)#.*$/, "").match(/\S+/g);
    if (!words) continue;
    if (text.startsWith(" ")) commands.at(-1)?.command.push(...words);
    else commands.push({ command: words, line: fence + 1 + index });
  }
  return commands;
}

/** An error with the line of the page, if the output tells it. */
function failure({ file, place }: Block, output: string): Error {
  const line = new RegExp(`${file.replaceAll(".", "\\.")}:(\\d+)|^line (\\d+):`, "m").exec(output);
  const where = line ? `${file}:${line[1] ?? line[2]}` : place;
  return new Error(`${where} (block at ${place}):\n${output}`);
}
