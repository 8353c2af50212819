/** The generated module says what the Lua files say, and is found when it no longer does. */
import { createHash } from "node:crypto";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { counterAdd, counterRenewMany } from "./fixtures/src/scripts/generated.js";
import { FIXTURES, GENERATED, runTool, TempRoot } from "./tool.js";

let root: TempRoot;
beforeEach(() => {
  root = new TempRoot();
});
afterEach(() => root.dispose());

test("the fixtures' module is as the tool writes it", () => {
  expect(runTool(FIXTURES, "--check")).toEqual({ status: 0, errors: "" });
});

test("a script is sent without comments, blank lines and indentation, behind its snippets", () => {
  expect(counterAdd.legacy.text.split("\n")).toEqual([
    "local function announce(channel, message)",
    "redis.pcall('PUBLISH', channel, message)",
    "end",
    "local counter, channel = KEYS[1], KEYS[2]",
    "local owner, amount, lease = ARGV[1], ARGV[2], ARGV[3]",
    "if amount == '0' then",
    "return {0, 0}",
    "end",
    "local count = redis.call('HINCRBY', counter, owner, amount)",
    "redis.call('PEXPIRE', counter, lease)",
    "announce(channel, '`$" + "{count}\\\\n')",
    "return {1, count}",
  ]);
});

test("flags are for the modern text only; without flags there is one text", () => {
  expect(counterAdd.modern.text).toBe(`#!lua flags=allow-oom\n${counterAdd.legacy.text}`);
  expect(counterRenewMany.modern.text).not.toContain("#!lua");
  expect(counterRenewMany.legacy).toBe(counterRenewMany.modern);
});

test.each([counterAdd.modern, counterAdd.legacy, counterRenewMany.modern])(
  "sha1 is that of the text",
  (script) => {
    expect(createHash("sha1").update(script.text).digest("hex")).toBe(script.sha1);
  },
);

test("keys and arguments are described in the order of the header", () => {
  expect(counterRenewMany.name).toBe("counter/renew-many");
  expect(counterRenewMany.keys).toEqual([{ name: "counters", type: "hash", variadic: true }]);
  expect(counterRenewMany.args).toEqual([
    { name: "limit", type: "int" },
    { name: "owners", type: "text", variadic: true },
    { name: "leases", type: "ms", variadic: true },
  ]);
});

test("writing is repeatable, and a stale or missing module is found", () => {
  cpSync(join(FIXTURES, "lua"), join(root.path, "lua"), { recursive: true });
  expect(runTool(root.path, "--check").errors).toBe(`${GENERATED}:1: is stale; run \`npm run lua\`\n`);

  expect(runTool(root.path).status).toBe(0);
  expect(runTool(root.path, "--check")).toEqual({ status: 0, errors: "" });
  const written = root.read(GENERATED);

  root.write({ [GENERATED]: written.replace("\n/**", "\n// edited\n/**") });
  expect(runTool(root.path, "--check")).toEqual({
    status: 1,
    errors: `${GENERATED}:4: is stale; run \`npm run lua\`\n`,
  });
  runTool(root.path);
  expect(root.read(GENERATED)).toBe(written);
});

test("without scripts the module is empty but valid", () => {
  expect(runTool(root.path).status).toBe(0);
  expect(root.read(GENERATED)).toMatch(/^\/\/ Generated .*\nexport \{\};\n$/);
});
