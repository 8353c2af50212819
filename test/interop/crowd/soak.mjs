// The mixed soak, for as long as you like: node test/interop/crowd/soak.mjs --minutes 30 [--redisson VERSION]
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, redisson: { type: "string" } },
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new RangeError("--minutes must be a number above 0");

const options = {
  cwd: fileURLToPath(new URL("../../..", import.meta.url)),
  stdio: "inherit",
  env: { ...process.env, HOLDFAST_SOAK_MINUTES: String(minutes) },
};
const version = values.redisson === undefined ? [] : ["--redisson", values.redisson];
const build = spawnSync("npx", ["tsdown", "--logLevel", "warn"], options);
const run = ["test/interop/run.mjs", ...version, "test/interop/crowd/soak.test.ts"];
process.exitCode = build.status || (spawnSync(process.execPath, run, options).status ?? 1);
