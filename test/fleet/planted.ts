/**
 * Mistakes that the fleet has to find. Each replaces some scripts by others, on the connections that the library makes:
 * the same scripts, in which one command of Redis does something else.
 */
import { createHash } from "node:crypto";
import * as generated from "../../src/scripts/generated.js";

/** A script, and what is sent instead. */
export interface Swap {
  readonly sha1: string;
  readonly text: string;
  readonly planted: { readonly sha1: string; readonly text: string };
}

interface Planted {
  /** The kind of lock that shows it. */
  readonly kind: string;
  readonly scripts: readonly string[];
  /** Lua: the body of a function of `run`, `command` and its arguments, the first of which is `key`; it may run something else. */
  readonly does: string;
}

export const PLANTED: Readonly<Record<string, Planted>> = {
  // The release deletes the lock without checking its owner.
  "frees others": {
    kind: "lock",
    scripts: ["plain/end"],
    does: "if command == 'HDEL' then return run('DEL', key) end",
  },

  // Every call is granted the lock.
  "grants what is held": {
    kind: "lock",
    scripts: ["plain/take"],
    does: "if command == 'EXISTS' and key == KEYS[1] then return run(command, KEYS[2]) end",
  },

  // A release tells nobody.
  "silent release": {
    kind: "lock",
    scripts: ["plain/end", "plain/pass"],
    does: "if command == 'PUBLISH' or command == 'SPUBLISH' then return 0 end",
  },

  // A reader checks whether the lock is held, but not in which mode.
  "reads next to a writer": {
    kind: "readwrite",
    scripts: ["read/take"],
    does: "if command == 'HGET' and select(2, ...) == 'mode' then return run(command, ...) and 'read' end",
  },

  // The counter of tokens is read, but not raised.
  "tokens that stay": {
    kind: "fenced",
    scripts: ["fenced/take", "fenced/pass"],
    does: "if command == 'INCR' and run('EXISTS', key) == 1 then return 2 ^ 53 end",
  },

  // Node has a counter of tokens that Redisson does not know.
  "own counter": {
    kind: "fenced",
    scripts: ["fenced/take", "fenced/pass"],
    does: "if string.find(key or '', 'lock_token') then return run(command, key .. ':own', select(2, ...)) end",
  },

  // A semaphore grants one permit more than it has.
  "a permit too many": {
    kind: "semaphore",
    scripts: ["semaphore/acquire"],
    does: "if command == 'GET' and key == KEYS[1] then return tostring((run(command, key) or 0) + 1) end",
  },
};

/** The swaps that plant a mistake. */
export function swapsOf(name: string): Swap[] {
  const planted = PLANTED[name];
  if (!planted)
    throw new RangeError(`no mistake is called "${name}": there are ${Object.keys(PLANTED).join(", ")}`);
  const mine = Object.values(generated).filter((script) => planted.scripts.includes(script.name));
  if (mine.length < planted.scripts.length)
    throw new Error(`some script is missing: ${planted.scripts.join(", ")}`);
  return mine.flatMap(({ modern, legacy }) =>
    [modern, legacy].map(({ sha1, text }) => {
      const other = withPlanted(text, planted.does);
      return { sha1, text, planted: { text: other, sha1: createHash("sha1").update(other).digest("hex") } };
    }),
  );
}

/** The script with another `redis` in front of it; its first line may have to stay the first one. */
function withPlanted(text: string, does: string): string {
  const [, head = "", body = ""] = /^(#!.*\n)?([\s\S]*)$/.exec(text) ?? [];
  return `${head}
local untouched = redis
local function planted(run, command, ...)
  local key = ...
  ${does}
  return run(command, ...)
end
local redis = setmetatable({}, {__index = untouched})
redis.call = function(...) return planted(untouched.call, ...) end
redis.pcall = function(...) return planted(untouched.pcall, ...) end
${body}`;
}
