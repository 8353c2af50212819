// The exclusion tests for as long as you like: node test/exclusion/soak.mjs --minutes 30
// With --kind lock, fair, fenced, readwrite, unranked (readers do not yield to writers), semaphore, permits or latch:
// that kind alone.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const FILES = {
  exclusion: ["lock"],
  kinds: ["fair", "fenced", "readwrite", "unranked"],
  crowd: ["semaphore", "permits", "latch"],
};

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, kind: { type: "string" } },
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new RangeError("--minutes must be a number above 0");
const { kind } = values;
const chosen = Object.entries(FILES).filter(([, kinds]) => kind === undefined || kinds.includes(kind));
if (chosen.length === 0) {
  throw new RangeError(`--kind must be one of ${Object.values(FILES).flat().join(", ")}`);
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const options = {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, HOLDFAST_SOAK_MINUTES: String(minutes), HOLDFAST_SOAK_KIND: kind ?? "" },
};
const files = chosen.map(([name]) => `test/exclusion/${name}.test.ts`);
const build = spawnSync("npx", ["tsdown", "--logLevel", "warn"], options);
process.exitCode = build.status || spawnSync("npx", ["vitest", "run", ...files], options).status;
