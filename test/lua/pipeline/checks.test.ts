/** Every way in which a header and its code can disagree is found, with the file and the line. */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { runTool, TempRoot } from "./tool.js";

const GOOD = `-- Takes a lock.
--
-- KEYS
--   lock     hash     owner -> hold count
--   channel  channel  told of it
-- ARGV
--   owner    text     clientId:n
--   lease    ms       TTL of the lock
-- REPLY
--   1  granted
-- INCLUDE shared/announce

local lock, channel = KEYS[1], KEYS[2]
local owner, lease = ARGV[1], ARGV[2]

redis.call('HSET', lock, owner, 1)
-- Never without a TTL.
redis.call('PEXPIRE', lock, lease)
announce(channel)
return 1
`;

const SNIPPET = `-- Tells waiters.
local function announce(channel)
  redis.pcall('PUBLISH', channel, '0')
end
`;

let root: TempRoot;
beforeEach(() => {
  root = new TempRoot();
});
afterEach(() => root.dispose());

function check(script: string, snippet: string = SNIPPET): { status: number | null; errors: string } {
  root.write({ "lua/lock/acquire.lua": script, "lua/shared/announce.lua": snippet });
  return runTool(root.path);
}

test("a script whose header is right passes", () => {
  expect(check(GOOD)).toEqual({ status: 0, errors: "" });
});

type Case = [title: string, from: string, to: string, error: string];

const BAD_HEADERS: Case[] = [
  ["no prose", "-- Takes a lock.\n--\n", "", "1: the header must start with what the script does"],
  ["no KEYS", "-- KEYS\n", "", "1: the header names no key"],
  ["no REPLY", "-- REPLY\n--   1  granted\n", "", "1: the header names no reply"],
  ["an empty REPLY", "--   1  granted\n", "", "1: the header names no reply"],
  ["sections out of order", "-- INCLUDE shared/announce", "-- ARGV", "11: ARGV does not belong here"],
  ["a section twice", "-- REPLY", "-- ARGV", "9: ARGV does not belong here"],
  ["a line of no section", "-- REPLY", "-- REPLIES", "9: 'REPLIES' belongs to no section"],
  ["an unknown key type", "channel  channel", "channel  stream", "5: 'channel': unknown type 'stream'"],
  ["an unknown argument type", "lease    ms", "lease    seconds", "8: 'lease': unknown type 'seconds'"],
  ["no type", "--   lease    ms       TTL of the lock", "--   lease", "8: 'lease': unknown type ''"],
  ["a name in snake case", "--   lease  ", "--   lease_ms  ", "8: 'lease_ms' is not a camelCase name"],
  ["a Lua keyword", "--   owner  ", "--   end  ", "7: 'end' is a Lua keyword"],
  ["the name of a global", "--   owner  ", "--   type  ", "7: 'type' would hide the global"],
  ["a name twice", "--   owner  ", "--   lock  ", "7: 'lock' is named twice"],
  ["a variadic argument first", "--   owner  ", "--   owner...  ", "8: 'lease' follows a variadic entry"],
  ["a variadic key first", "--   lock  ", "--   lock...  ", "5: 'channel' follows a variadic entry"],
  ["an unknown flag", "-- INCLUDE", "-- FLAGS allow-oops\n-- INCLUDE", "11: unknown flag 'allow-oops'"],
  ["an unknown snippet", "shared/announce", "shared/tell", "11: lua/shared/tell.lua does not exist"],
  [
    "a snippet twice",
    "-- INCLUDE",
    "-- INCLUDE shared/announce\n-- INCLUDE",
    "12: 'shared/announce' is included twice",
  ],
];

const BAD_CODE: Case[] = [
  ["a syntax error", "return 1", "return return", "20: "],
  [
    "a renamed argument",
    "local owner,",
    "local holder,",
    "14: the header wants 'owner = ARGV[1]' here, not 'holder = ARGV[1]'",
  ],
  [
    "swapped names",
    "local owner, lease",
    "local lease, owner",
    "14: the header wants 'owner = ARGV[1]' here",
  ],
  [
    "swapped values",
    "= ARGV[1], ARGV[2]",
    "= ARGV[2], ARGV[1]",
    "14: the header wants 'owner = ARGV[1]' here",
  ],
  [
    "arguments before keys",
    "local lock, channel = KEYS[1], KEYS[2]\n",
    "",
    "13: the header wants 'lock = KEYS[1]' here",
  ],
  [
    "a missing binding",
    "local owner, lease = ARGV[1], ARGV[2]\n",
    "",
    "15: the header wants 'local owner = ARGV[1]' here",
  ],
  [
    "a missing value",
    "= ARGV[1], ARGV[2]",
    "= ARGV[1]",
    "14: the header wants 'lease = ARGV[2]' here, not 'lease = nil'",
  ],
  ["a surplus value", "= ARGV[1], ARGV[2]", "= ARGV[1], ARGV[2], ARGV[3]", "14: more values than names"],
  [
    "a surplus name",
    "lease = ARGV[1], ARGV[2]",
    "lease, now = ARGV[1], ARGV[2], 0",
    "14: the header wants 'the end of this statement'",
  ],
  ["an undeclared argument", "return 1", "return ARGV[3]", "20: ARGV is for the header's locals only"],
  ["an undeclared key", "return 1", "return #KEYS", "20: KEYS is for the header's locals only"],
  [
    "a name that is not used",
    "announce(channel)",
    "announce('x')",
    "5: 'channel' is declared but never used",
  ],
  [
    "a name that is used as a field only",
    "lock, lease)",
    "lock, math.lease)",
    "8: 'lease' is declared but never used",
  ],
  ["a global read", "lock, owner, 1", "lock, owner, count", "16: 'count' is an unknown global"],
  ["a global written", "return 1", "count = 1\nreturn 1", "20: 'count' is an unknown global"],
  ["a global function", "return 1", "function help() end\nreturn 1", "20: 'help' is an unknown global"],
  [
    "a snippet that is not used",
    "announce(channel)",
    "redis.call('DEL', channel)",
    "11: nothing of 'shared/announce' is used",
  ],
  [
    "a snippet that is not included",
    "-- INCLUDE shared/announce\n",
    "",
    "18: 'announce' is an unknown global",
  ],
  [
    "a name that hides a shared function",
    "return 1",
    "local announce = 1\nreturn announce",
    "20: 'announce' would hide the shared function of that name",
  ],
  ["no return", "return 1\n", "", "19: the script has no return"],
  [
    "a return in a function only",
    "return 1",
    "local function one() return 1 end",
    "20: the script has no return",
  ],
  ["a trailing comment", "announce(channel)", "announce(channel) -- tell", "19: a trailing comment"],
  ["a block comment", "-- Never without a TTL.", "--[[ TTL ]]", "17: a block comment"],
  ["a multi-line string", "return 1", "return [[1]]", "20: a multi-line string"],
  ["a string with a broken line", "return 1", "return '1\\\n2'", "20: a multi-line string"],
];

describe("a mistake is found:", () => {
  const cases = [...BAD_HEADERS, ...BAD_CODE].map(
    (row, index) => [...row, `lua/lock/case-${index}.lua`] as const,
  );
  let errors: string;
  // One run for all cases, because to start the tool costs far more than to check a file.
  beforeAll(() => {
    const all = new TempRoot();
    all.write({ "lua/shared/announce.lua": SNIPPET });
    for (const [, from, to, , file] of cases) all.write({ [file]: GOOD.replace(from, to) });
    errors = runTool(all.path).errors;
    all.dispose();
  });

  test.each(cases)("%s", (_title, from, _to, error, file) => {
    expect(GOOD).toContain(from);
    expect(errors).toContain(`${file}:${error}`);
  });
});

const BAD_SNIPPETS: [title: string, snippet: string, error: string][] = [
  ["a statement", `${SNIPPET}return 1\n`, "5: a snippet holds local functions only"],
  [
    "a global function",
    SNIPPET.replace("local function", "function"),
    "2: a snippet holds local functions only",
  ],
  ["a read of ARGV", SNIPPET.replace("'0'", "ARGV[1]"), "3: ARGV is for the header's locals only"],
  ["a global", SNIPPET.replace("'0'", "message"), "3: 'message' is an unknown global"],
  [
    "a parameter that is not used",
    SNIPPET.replace("(channel)", "(channel, message)"),
    "2: the parameter 'message' is never used",
  ],
];

test.each(BAD_SNIPPETS)("%s in a snippet is a mistake", (_title, snippet, error) => {
  const { status, errors } = check(GOOD, snippet);
  expect(status).toBe(1);
  expect(errors).toContain(`lua/shared/announce.lua:${error}`);
});

test("a snippet may use those that it includes, and brings them along", () => {
  root.write({
    "lua/lock/acquire.lua": GOOD,
    "lua/shared/aloud.lua": "local function aloud() return 'PUBLISH' end\n",
    "lua/shared/announce.lua": `-- INCLUDE shared/aloud\n${SNIPPET.replace("'PUBLISH'", "aloud()")}`,
  });
  expect(runTool(root.path)).toEqual({ status: 0, errors: "" });
  expect(root.read("src/scripts/generated.ts")).toMatch(/function aloud[\s\S]*function announce/);
});

test("a snippet that includes what is not there is a mistake", () => {
  const { status, errors } = check(GOOD, `-- INCLUDE shared/aloud\n${SNIPPET}`);
  expect(status).toBe(1);
  expect(errors).toContain("lua/shared/announce.lua:1: lua/shared/aloud.lua does not exist");
});

const VARIADIC = `-- Renews locks.
-- KEYS
--   locks...   hash
-- ARGV
--   owners...  text
-- REPLY
--   1
local locks = KEYS
for i = 1, #locks do redis.call('HSET', locks[i], ARGV[i], 1) end
return 1
`;

test("a variadic key is bound to KEYS, and variadic arguments are read from ARGV", () => {
  expect(check(VARIADIC)).toEqual({ status: 0, errors: "" });
  expect(check(VARIADIC.replace("= KEYS", "= KEYS[1]")).errors).toContain(
    "8: the header wants 'locks = KEYS' here",
  );
  expect(check(VARIADIC.replace("ARGV[i]", "'a'")).errors).toContain("5: ARGV is variadic but never read");
  expect(check(VARIADIC.replace("ARGV[i]", "KEYS[i]")).errors).toContain(
    "9: KEYS is for the header's locals only",
  );
});

test("file names are kebab-case, since they name the constants", () => {
  root.write({ "lua/lock/try_acquire.lua": VARIADIC });
  expect(runTool(root.path).errors).toContain(
    "lua/lock/try_acquire.lua:1: folder and file names are kebab-case",
  );
});

test("the mistakes of all files are reported at once, and nothing is written", () => {
  root.write({ "lua/lock/acquire.lua": VARIADIC.replace("hash", "hush"), "lua/lock/renew.lua": "" });
  const { status, errors } = runTool(root.path);
  expect(status).toBe(1);
  expect(errors).toMatch(/acquire\.lua:3: .*\n.*renew\.lua:1: /);
  expect(() => root.read("src/scripts/generated.ts")).toThrow("ENOENT");
});
