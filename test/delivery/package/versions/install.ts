/**
 * Installs what package.json here pins: versions that users may have, beside those that the library is developed with.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const OUT = fileURLToPath(new URL("../../../../out", import.meta.url));
const INSTALLED = join(HERE, "node_modules");

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly optional?: boolean }>>;
}

async function readLockFile(path: string): Promise<LockFile | undefined> {
  try {
    return JSON.parse(await readFile(join(HERE, path), "utf8")) as LockFile;
  } catch {
    return undefined;
  }
}

async function isInstalled(): Promise<boolean> {
  const [wanted, installed] = await Promise.all([
    readLockFile("package-lock.json"),
    readLockFile("node_modules/.package-lock.json"),
  ]);
  if (!wanted || !installed) return false;
  return Object.entries(wanted.packages).every(
    ([path, { version, optional }]) =>
      path === "" || optional || installed.packages[path]?.version === version,
  );
}

/** Why the versions are missing, or undefined when they are installed. Asks the registry only if they are not. */
export async function installVersions(): Promise<string | undefined> {
  if (await isInstalled()) return undefined;
  await mkdir(OUT, { recursive: true });
  const folder = await mkdtemp(join(OUT, "versions-"));
  try {
    for (const file of ["package.json", "package-lock.json", ".npmrc"])
      await cp(join(HERE, file), join(folder, file));
    await promisify(execFile)("npm", ["ci", "--ignore-scripts"], { cwd: folder, timeout: 240_000 });
    await putInPlace(join(folder, "node_modules"));
    return undefined;
  } catch (error) {
    return `npm ci failed for test/delivery/package/versions: ${(error as Error).message.split("\n", 1)[0]}`;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Several test files may install at the same time: the first installation stays, since a test may use it already. */
async function putInPlace(modules: string): Promise<void> {
  if (await isInstalled()) return;
  await rm(INSTALLED, { recursive: true, force: true });
  await rename(modules, INSTALLED).catch(async (error: Error) => {
    if (!(await isInstalled())) throw error;
  });
}

/** The folder of an installed package. */
export function versionFolder(name: string): string {
  return join(HERE, "node_modules", name);
}
