// The tests beside Java alone: node test/interop/run.mjs [--redisson VERSION]... [--minutes N] [arguments of vitest]
// With --minutes, the crowd of both sides for as long.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { isVersion } from "../../interop/build.mjs";

const { values, tokens } = parseArgs({
  options: { redisson: { type: "string", multiple: true }, minutes: { type: "string" } },
  strict: false,
  tokens: true,
});
const { redisson, minutes } = values;
const bad = redisson?.find((version) => !isVersion(version));
if (bad !== undefined) throw new RangeError(`--redisson takes a version such as 4.7.0, not ${bad}`);
if (minutes !== undefined && !(Number.parseFloat(minutes) > 0))
  throw new RangeError("--minutes must be a number above 0");
const own = new Set(
  tokens.flatMap(({ name, index, inlineValue }) => {
    if (name !== "redisson" && name !== "minutes") return [];
    return inlineValue ? [index] : [index, index + 1];
  }),
);
const rest = process.argv.slice(2).filter((_, index) => !own.has(index));
if (minutes !== undefined) rest.push("test/interop/crowd");
const { status } = spawnSync("npx", ["vitest", "run", "--project", "interop*", ...rest], {
  cwd: fileURLToPath(new URL("../..", import.meta.url)),
  stdio: "inherit",
  env: {
    ...process.env,
    ...(redisson ? { HOLDFAST_REDISSON: redisson.join(",") } : {}),
    ...(minutes ? { HOLDFAST_SOAK_MINUTES: minutes } : {}),
  },
});
process.exitCode = status ?? 1;
