/** Every way in which a header and its code can disagree is found, with the file and the line; and so is a stale module. */
import { afterAll, beforeAll, expect, test } from "vitest";
import * as generated from "../../../src/scripts/generated.js";
import { GENERATED, runTool, TempRoot } from "./tool.js";

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

const VARIADIC = `-- Renews locks.
-- KEYS
--   locks...   hash
-- ARGV
--   owners...  text
-- REPLY
--   1
for i = 1, #locks do redis.call('HSET', locks[i], ARGV[i], 1) end
return 1
`;

/** In a line: the mistake | what is replaced | by what | the line and the message. The sign ¶ ends a line of the text. */
const IN_SCRIPTS = `
no prose | -- Takes a lock.¶--¶ |  | 1: the header must start with what the script does
no KEYS | -- KEYS¶ |  | 1: the header names no key
no REPLY | -- REPLY¶--   1  granted¶ |  | 1: the header names no reply
an empty REPLY | --   1  granted¶ |  | 1: the header names no reply
sections out of order | -- INCLUDE shared/announce | -- ARGV | 11: ARGV does not belong here
a section twice | -- REPLY | -- ARGV | 9: ARGV does not belong here
a line of no section | -- REPLY | -- REPLIES | 9: 'REPLIES' belongs to no section
an unknown key type | channel  channel | channel  stream | 5: 'channel': unknown type 'stream'
an unknown argument type | lease    ms | lease    seconds | 8: 'lease': unknown type 'seconds'
no type | --   lease    ms       TTL of the lock | --   lease | 8: 'lease': unknown type ''
a name in snake case | --   lease   | --   lease_ms   | 8: 'lease_ms' is not a camelCase name
a Lua keyword | --   owner   | --   end   | 7: 'end' is a Lua keyword
the name of a global | --   owner   | --   type   | 7: 'type' would hide the global
a name twice | --   owner   | --   lock   | 7: 'lock' is named twice
a variadic argument first | --   owner   | --   owner...   | 8: 'lease' follows a variadic entry
a variadic key first | --   lock   | --   lock...   | 5: 'channel' follows a variadic entry
an unknown snippet | shared/announce | shared/tell | 11: lua/shared/tell.lua does not exist
a snippet twice | -- INCLUDE | -- INCLUDE shared/announce¶-- INCLUDE | 12: 'shared/announce' is included twice
a syntax error | return 1 | return return | 17:
an undeclared argument | return 1 | return ARGV[3] | 17: ARGV: say the names of the header
an undeclared key | return 1 | return #KEYS | 17: KEYS: say the names of the header
a name that is not used | announce(channel) | announce('x') | 5: 'channel' is declared but never used
a name that is used as a field only | lock, lease) | lock, math.lease) | 8: 'lease' is declared but never used
a global read | lock, owner, 1 | lock, owner, count | 13: 'count' is an unknown global
a global written | return 1 | count = 1¶return 1 | 17: 'count' is an unknown global
a global function | return 1 | function help() end¶return 1 | 17: 'help' is an unknown global
a snippet that is not used | announce(channel) | redis.call('DEL', channel) | 11: nothing of 'shared/announce' is used
a snippet that is not included | -- INCLUDE shared/announce¶ |  | 15: 'announce' is an unknown global
a name that hides a shared function | return 1 | local announce = 1¶return announce | 17: 'announce' would hide the shared function of that name
no return | return 1¶ |  | 16: the script has no return
a return in a function only | return 1 | local function one() return 1 end | 17: the script has no return
a trailing comment | announce(channel) | announce(channel) -- tell | 16: a trailing comment
a block comment | -- Never without a TTL. | --[[ TTL ]] | 14: a block comment
a multi-line string | return 1 | return [[1]] | 17: a multi-line string
a string with a broken line | return 1 | return '1\\¶2' | 17: a multi-line string
`;
const IN_VARIADIC_SCRIPTS = `
variadic arguments that nobody reads | ARGV[i] | 'a' | 5: ARGV is variadic but never read
a variadic key that is read past its name | ARGV[i] | KEYS[i] | 8: KEYS: say the names of the header
`;
const IN_SNIPPETS = `
a statement in a snippet | end¶ | end¶return 1¶ | 5: a snippet holds local functions only
a global function in a snippet | local function | function | 2: a snippet holds local functions only
a read of ARGV in a snippet | '0' | ARGV[1] | 3: ARGV: say the names of the header
a global in a snippet | '0' | message | 3: 'message' is an unknown global
a parameter that no snippet uses | (channel) | (channel, message) | 2: the parameter 'message' is never used
a snippet that includes none that is there | -- Tells | -- INCLUDE shared/aloud¶-- Tells | 1: lua/shared/aloud.lua does not exist
`;

interface Mistake {
  readonly title: string;
  readonly error: string;
  /** The first one is where the tool finds it. */
  readonly files: Readonly<Record<string, string>>;
}

let made = 0;

/** The mistakes of a table, each made in this text, which `filesOf` puts where the tool looks. */
function mistakes(table: string, text: string, filesOf: (text: string, name: string) => Mistake["files"]) {
  return table
    .trim()
    .split("\n")
    .map((line): Mistake => {
      const [title = "", from = "", to = "", error = ""] = line.replaceAll("¶", "\n").split(" | ");
      if (!text.includes(from)) throw new Error(`${title}: nothing reads ${from}`);
      return { title, error, files: filesOf(text.replace(from, to), `case-${made++}`) };
    });
}

const script = (text: string, name: string) => ({ [`lua/lock/${name}.lua`]: text });
const ALL: Mistake[] = [
  ...mistakes(IN_SCRIPTS, GOOD, script),
  ...mistakes(IN_VARIADIC_SCRIPTS, VARIADIC, script),
  ...mistakes(IN_SNIPPETS, SNIPPET, (text, name) => ({
    [`lua/shared/${name}.lua`]: text,
    ...script(GOOD.replace("shared/announce", `shared/${name}`), name),
  })),
  {
    title: "a file's name in snake case",
    error: "1: folder and file",
    files: script(VARIADIC, "try_acquire"),
  },
  { title: "an empty file", error: "1: ", files: script("", "renew") },
];

const [bad, good] = [new TempRoot(), new TempRoot()];
afterAll(() => {
  bad.dispose();
  good.dispose();
});

// One run for all mistakes, because to start the tool costs far more than to check a file.
let found: ReturnType<typeof runTool>;
beforeAll(() => {
  bad.write({ "lua/shared/announce.lua": SNIPPET });
  for (const { files } of ALL) bad.write(files);
  found = runTool(bad.path);
});

test.each(ALL)("$title is a mistake", ({ files, error }) => {
  expect(found.errors).toContain(`${Object.keys(files)[0]}:${error}`);
});

test("nothing is written where there are mistakes", () => {
  expect(found.status).toBe(1);
  expect(() => bad.read(GENERATED)).toThrow("ENOENT");
});

test("scripts whose headers are right pass, and bring along what their snippets include", () => {
  good.write({
    ...script(GOOD, "acquire"),
    ...script(VARIADIC, "renew"),
    "lua/shared/aloud.lua": "local function aloud() return 'PUBLISH' end\n",
    "lua/shared/announce.lua": `-- INCLUDE shared/aloud\n${SNIPPET.replace("'PUBLISH'", "aloud()")}`,
  });
  expect(runTool(good.path)).toEqual({ status: 0, errors: "" });
  expect(runTool(good.path, "--check")).toEqual({ status: 0, errors: "" });
  const written = good.read(GENERATED);
  expect(written).toMatch(/function aloud[\s\S]*function announce/);
  good.write({ [GENERATED]: written.replace("\nconst", "\n// edited\nconst") });
  expect(runTool(good.path, "--check").errors).toBe(`${GENERATED}:4: is stale; run \`npm run lua\`\n`);
});

test("no script that is sent has a function that it does not call", () => {
  for (const { name, text } of Object.values(generated)) {
    for (const [, called] of text.matchAll(/local function (\w+)/g)) {
      const uses = text.split(new RegExp(`\\b${called}\\(`)).length - 1;
      expect(uses, `${name}: ${called}`).toBeGreaterThan(1);
    }
  }
});
