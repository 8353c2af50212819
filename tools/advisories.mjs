// Whether a security advisory is known of what users install with the package. Not every registry can tell.
import { spawnSync } from "node:child_process";

// What only this repository installs reaches nobody, and an advisory on it is no reason to stop all work.
const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], { encoding: "utf8", timeout: 60_000 });

/** @returns {{ vulnerabilities?: Record<string, { severity: string }>, message?: string }} */
function answer() {
  try {
    return JSON.parse(stdout);
  } catch {
    return {};
  }
}

const { vulnerabilities, message } = answer();
const known = Object.entries(vulnerabilities ?? {}).map(([name, { severity }]) => `${name}: ${severity}`);
if (!vulnerabilities) console.log(`skipped: no advisory service (${message ?? "no answer"})`);
if (known.length > 0) console.log(`npm audit --omit=dev:\n${known.join("\n")}`);
process.exitCode = known.length > 0 ? 1 : 0;
