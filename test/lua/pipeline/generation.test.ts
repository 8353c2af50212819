/** The generated module agrees with the Lua files, and a check notices when it no longer does. */
import { createHash } from "node:crypto";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as generated from "../../../src/scripts/generated.js";
import { counterAdd, counterRenewMany } from "./fixtures/src/scripts/generated.js";
import { FIXTURES, GENERATED, runTool, TempRoot } from "./tool.js";

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

test("flags are for the modern text only, and without flags there is one text", () => {
  expect(counterAdd.modern.text).toBe(`#!lua flags=allow-oom\n${counterAdd.legacy.text}`);
  expect(counterRenewMany.modern.text).not.toContain("#!lua");
  expect(counterRenewMany.legacy).toBe(counterRenewMany.modern);
});

test("the sha1 of a script is that of its text", () => {
  for (const { text, sha1 } of [counterAdd.modern, counterAdd.legacy, counterRenewMany.modern])
    expect(createHash("sha1").update(text).digest("hex")).toBe(sha1);
});

test("keys and arguments are described in the order of the header", () => {
  expect(counterRenewMany.name).toBe("counter/renew-many");
  expect(counterRenewMany.keys).toEqual({ counters: "hash..." });
  const args = Object.entries(counterRenewMany.args);
  expect(args.map(([name, type]) => `${name} ${type}`)).toEqual([
    "limit int",
    "owners text...",
    "leases ms...",
  ]);
});

test("no script that is sent has a function that it does not call", () => {
  for (const { name, legacy } of Object.values(generated)) {
    for (const [, called] of legacy.text.matchAll(/local function (\w+)/g))
      expect(legacy.text.split(new RegExp(`\\b${called}\\(`)).length, `${name}: ${called}`).toBeGreaterThan(
        2,
      );
  }
});

const SHARED = `local function one(key)
  local n = redis.call('GET', key)
  return tonumber(n)
end
local function two(key)
  return one(key) + one(key)
end
local function three(key)
  return one(key) + two(key)
end
local function there(key)
  return -redis.call('EXISTS', key)
end
local function drop(a, b)
  redis.call('HDEL', b, a, 'x')
end
local function store(key, ...)
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

/** How the text of a script names a function of lua/shared/help.lua. */
const defined = (name: string): string => `$${`{sharedHelp${name}}`}\n`;
const [ONE, TWO, THREE, THERE] = ["One", "Two", "Three", "There"].map(defined) as [
  string,
  string,
  string,
  string,
];
/** The functions that a script has in full, before its own lines. */
const kept = (functions: string, code: string): [code: string, text: string] => [code, functions + code];

const BODIES: Record<string, [code: string, text: string]> = {
  "the functions that it calls, those that they call, and no others": kept(ONE + TWO, "return two(k)"),
  "a function in the branch that alone calls it": [
    "if k == 'a' then return two(k) end\nreturn 1",
    `if k == 'a' then\n${ONE}${TWO}return two(k) end\nreturn 1`,
  ],
  "a function once before the loop that calls it, and one in a branch behind it": [
    `if one(k) == 1 then
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
end`,
    `${ONE}${TWO}if one(k) == 1 then
for i = 1, 2 do
redis.call('SET', k, two(k)) end
return 1
elseif k == '' then
return 2
else
if k == 'a' then
${THREE}return three(k) end
return 3 end`,
  ],
  "a function of one command as that command": [
    "drop('f', k)\nreturn {1, k == '' and there(k)}",
    "redis.call('HDEL', k, 'f', 'x')\nreturn {1, k == '' and -redis.call('EXISTS', k)}",
  ],
  "a function of one command in full behind a minus": kept(THERE, "return 1 -there(k)"),
  "a function of one command in full for what is computed": kept(THERE, "return there(k .. 'a')"),
  "a function of one command in full for what is read": kept(THERE, "return there(redis.call('GET', k))"),
  "a function as its lines where its call is a statement": [
    "raise(k, '1')\nreturn store(k, 'a', 'b') or {1, k}",
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
  ],
  ...Object.fromEntries(
    [
      ["Store", "store(k)\nreturn 1"],
      ["Store", "return store(k)"],
      ["Store", "local set = 1\nreturn store(k, set) or 1"],
      ["Raise", "raise(k)\nreturn 1"],
      ["Raise", "raise(k, k .. 'a')\nreturn 1"],
      ["Raise", "local now = '1'\nraise(k, now)\nreturn 1"],
    ].map(([name = "", code = ""]) => [
      `a function in full where its lines would differ: ${code}`,
      [code, defined(name)] as [string, string],
    ]),
  ),
};

const [all, fixtures, empty] = [new TempRoot(), new TempRoot(), new TempRoot()];
beforeAll(() => {
  all.write({ "lua/shared/help.lua": SHARED });
  for (const [i, [code]] of Object.values(BODIES).entries()) {
    const header = "-- Does.\n-- KEYS\n--   k  hash\n-- REPLY\n--   1\n-- INCLUDE shared/help\n";
    all.write({ [`lua/a/b${i}.lua`]: `${header}local k = KEYS[1]\n${code}\n` });
  }
  expect(runTool(all.path)).toEqual({ status: 0, errors: "" });
});
afterAll(() => {
  for (const root of [all, fixtures, empty]) root.dispose();
});

test.each(Object.entries(BODIES))("a script is sent with %s", (title, [, text]) => {
  const at = Object.keys(BODIES).indexOf(title);
  const sent = [...all.read(GENERATED).matchAll(/name: "a\/b(\d+)"[^`]*`local k = KEYS\[1\]\n(.*?)`,\n/gs)];
  const [, , body] = sent.find(([, i]) => Number(i) === at) ?? [];
  expect(body).toContain(text);
});

test("the module is written alike each time, and a stale or missing one is found", () => {
  expect(runTool(FIXTURES, "--check")).toEqual({ status: 0, errors: "" });
  cpSync(join(FIXTURES, "lua"), join(fixtures.path, "lua"), { recursive: true });
  expect(runTool(fixtures.path, "--check").errors).toBe(`${GENERATED}:1: is stale; run \`npm run lua\`\n`);
  expect(runTool(fixtures.path).status).toBe(0);
  const written = fixtures.read(GENERATED);
  fixtures.write({ [GENERATED]: written.replace("\nconst", "\n// edited\nconst") });
  expect(runTool(fixtures.path, "--check")).toEqual({
    status: 1,
    errors: `${GENERATED}:4: is stale; run \`npm run lua\`\n`,
  });
  runTool(fixtures.path);
  expect(fixtures.read(GENERATED)).toBe(written);
});

test("without scripts the module is empty but valid", () => {
  expect(runTool(empty.path).status).toBe(0);
  expect(empty.read(GENERATED)).toMatch(/^\/\/ Generated .*\nexport \{\};\n$/);
});
