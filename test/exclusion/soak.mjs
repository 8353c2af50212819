// The exclusion test for as long as you like: node test/exclusion/soak.mjs --minutes 30
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new RangeError("--minutes must be a number above 0");

const root = fileURLToPath(new URL("../..", import.meta.url));
const options = {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, HOLDFAST_SOAK_MINUTES: String(minutes) },
};
const build = spawnSync("npx", ["tsdown", "--logLevel", "warn"], options);
process.exitCode =
  build.status || spawnSync("npx", ["vitest", "run", "test/exclusion/exclusion.test.ts"], options).status;
