// The interoperation tests alone: node test/interop/run.mjs [--redisson VERSION]... [arguments of vitest]
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { isVersion } from "../../interop/build.mjs";

const { values, tokens } = parseArgs({
  options: { redisson: { type: "string", multiple: true } },
  strict: false,
  tokens: true,
});
const bad = values.redisson?.find((version) => !isVersion(version));
if (bad !== undefined) {
  console.error(`--redisson takes a version such as 4.7.0, not ${bad}`);
  process.exit(1);
}
const own = new Set(
  tokens.flatMap(({ name, index, inlineValue }) => {
    if (name !== "redisson") return [];
    return inlineValue ? [index] : [index, index + 1];
  }),
);
const rest = process.argv.slice(2).filter((_, index) => !own.has(index));
const { status } = spawnSync("npx", ["vitest", "run", "--project", "interop*", ...rest], {
  cwd: fileURLToPath(new URL("../..", import.meta.url)),
  stdio: "inherit",
  env: { ...process.env, ...(values.redisson ? { HOLDFAST_REDISSON: values.redisson.join(",") } : {}) },
});
process.exitCode = status ?? 1;
