/** The generated module agrees with the Lua files, and a check notices when it no longer does. */
import { createHash } from "node:crypto";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as generated from "../../../src/scripts/generated.js";
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

test("a script is sent without comments, blank lines, indentation, and lines of an end alone", () => {
  expect(counterAdd.legacy.text.split("\n")).toEqual([
    "local counter, channel = KEYS[1], KEYS[2]",
    "local owner, amount, lease = ARGV[1], ARGV[2], ARGV[3]",
    "if amount == '0' then",
    "return {0, 0} end",
    "local count = redis.call('HINCRBY', counter, owner, amount)",
    "redis.call('PEXPIRE', counter, lease)",
    "redis.pcall('PUBLISH', channel, '`$" + "{count}\\\\n')",
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

/** The text of the only script of these files, as it stands in the generated module. */
function generatedBody(shared: string, code: string): string {
  const includes = [...shared.matchAll(/function (\w+)/g)].length > 0 ? "-- INCLUDE shared/help\n" : "";
  const header = "-- Does.\n-- KEYS\n--   k  hash\n-- REPLY\n--   1\n";
  root.write({
    "lua/shared/help.lua": shared,
    "lua/a/b.lua": `${header}${includes}local k = KEYS[1]\n${code}`,
  });
  expect(runTool(root.path)).toEqual({ status: 0, errors: "" });
  return /Header,\n {2}`local k = KEYS\[1\]\n(.*)`,\n/s.exec(root.read(GENERATED))?.[1] ?? "";
}

const COUNTS = `local function one(key)
  local n = redis.call('GET', key)
  return tonumber(n)
end
local function two(key)
  return one(key) + one(key)
end
local function three(key)
  return one(key) + two(key)
end
`;

/** How the text of a script names a function of lua/shared/help.lua. */
const defined = (name: string): string => `$${`{sharedHelp${name}}`}`;

test("a script has the functions that it calls, those that they call, and no others", () => {
  expect(generatedBody(COUNTS, "return two(k)\n")).toBe(
    `${defined("One")}\n${defined("Two")}\nreturn two(k)`,
  );
  expect(root.read(GENERATED)).not.toContain("local function three");
});

test("a function is defined where only those paths that call it come by, and not in each round of a loop", () => {
  const code = `if one(k) == 1 then
  for i = 1, 2 do
    redis.call('SET', k, two(k))
  end
  return 1
elseif k == '' then
  return 2
else
  if k == 'a' then
    return three(k)
  end
  return 3
end
`;
  const expected = code.replaceAll(/^ +/gm, "").trim().replaceAll("\nend", " end");
  expect(generatedBody(COUNTS, code)).toBe(
    `${defined("One")}\n${defined("Two")}\n` +
      expected.replace("return three", `${defined("Three")}\nreturn three`),
  );
  const branch = generatedBody(COUNTS, "if k == 'a' then return two(k) end\nreturn 1\n");
  expect(branch).toBe(`if k == 'a' then\n${defined("One")}\n${defined("Two")}\nreturn two(k) end\nreturn 1`);
});

test("a function that is one command is written out where that is the same", () => {
  const shared = `local function there(key)
  return -redis.call('EXISTS', key)
end
local function drop(a, b)
  redis.call('HDEL', b, a, 'x')
end
`;
  expect(generatedBody(shared, "drop('f', k)\nreturn {1, k == '' and there(k)}\n")).toBe(
    "redis.call('HDEL', k, 'f', 'x')\nreturn {1, k == '' and -redis.call('EXISTS', k)}",
  );
  const kept = `${defined("There")}\n`;
  for (const code of ["return 1 -there(k)", "return there(k .. 'a')", "return there(redis.call('GET', k))"]) {
    expect(generatedBody(shared, `${code}\n`)).toBe(kept + code);
  }
});

test("a function is written out where a call of it is a statement of its own", () => {
  const shared = `local function store(key, ...)
  redis.call('HSET', key, ...)
  local set = redis.pcall('PEXPIRE', key, 5)
  if set ~= 1 then
    return set
  end
end
local function raise(key, most)
  local now = redis.call('GET', key)
  if now < most then
    redis.call('SET', key, most)
  end
end
`;
  expect(generatedBody(shared, "raise(k, '1')\nreturn store(k, 'a', 'b') or {1, k}\n")).toBe(
    [
      "do",
      "local now = redis.call('GET', k)",
      "if now < '1' then",
      "redis.call('SET', k, '1') end end",
      "redis.call('HSET', k, 'a', 'b')",
      "local set = redis.pcall('PEXPIRE', k, 5)",
      "if set ~= 1 then",
      "return set end",
      "return {1, k}",
    ].join("\n"),
  );
  const kept = {
    Store: ["store(k)\nreturn 1", "return store(k)", "local set = 1\nreturn store(k, set) or 1"],
    Raise: ["raise(k)\nreturn 1", "raise(k, k .. 'a')\nreturn 1", "local now = '1'\nraise(k, now)\nreturn 1"],
  };
  for (const [name, codes] of Object.entries(kept)) {
    for (const code of codes) expect(generatedBody(shared, `${code}\n`)).toContain(defined(name));
  }
});

describe("of the scripts that are sent", () => {
  const scripts = Object.values(generated).map(({ name, legacy }) => [name, legacy.text] as const);
  test.each(scripts)("%s has no function that it does not call", (_name, text) => {
    for (const [, name] of text.matchAll(/local function (\w+)/g)) {
      expect(text.split(new RegExp(`\\b${name}\\(`)).length, name).toBeGreaterThan(2);
    }
  });
});

test("keys and arguments are described in the order of the header", () => {
  expect(counterRenewMany.name).toBe("counter/renew-many");
  expect(counterRenewMany.keys).toEqual({ counters: "hash..." });
  expect(Object.entries(counterRenewMany.args)).toEqual([
    ["limit", "int"],
    ["owners", "text..."],
    ["leases", "ms..."],
  ]);
});

test("writing is repeatable, and a stale or missing module is found", () => {
  cpSync(join(FIXTURES, "lua"), join(root.path, "lua"), { recursive: true });
  expect(runTool(root.path, "--check").errors).toBe(`${GENERATED}:1: is stale; run \`npm run lua\`\n`);

  expect(runTool(root.path).status).toBe(0);
  expect(runTool(root.path, "--check")).toEqual({ status: 0, errors: "" });
  const written = root.read(GENERATED);

  root.write({ [GENERATED]: written.replace("\nconst", "\n// edited\nconst") });
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
