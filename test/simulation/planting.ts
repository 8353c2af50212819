/** Ways to plant a mistake: other scripts, another clock, other options, other locks. Each returns what removes it. */
import { createHash } from "node:crypto";
import type { Clock } from "../../src/base/clock.js";
import type { Hold, LockClientOptions } from "../../src/index.js";
import * as generated from "../../src/scripts/generated.js";

/** What the processes of a simulation are made with. */
export interface Injected {
  clock(clock: Clock): Clock;
  options: LockClientOptions;
  /** Of a lock: what its `lock` and `tryLock` resolve or reject with. */
  granted(granting: Promise<Hold | null>): Promise<Hold | null>;
}

const NOTHING: Injected = { clock: (clock) => clock, options: {}, granted: (granting) => granting };

export const injected: Injected = { ...NOTHING };

export type Plant = () => () => void;

export function inject(mistake: Partial<Injected>): Plant {
  return () => {
    Object.assign(injected, mistake);
    return () => Object.assign(injected, NOTHING);
  };
}

export function both(one: Plant, other: Plant): Plant {
  return () => {
    const repairs = [one(), other()];
    return () => {
      for (const repair of repairs) repair();
    };
  };
}

/** What runs instead of each command of a script, before it and after it: see planted.lua. */
interface Lua {
  readonly command?: string;
  readonly before?: string;
  readonly after?: string;
}

interface Replaceable {
  readonly name: string;
  modern: { readonly text: string; readonly sha1: string };
  legacy: { readonly text: string; readonly sha1: string };
}

const SCRIPTS = Object.values(generated) as readonly Replaceable[];

/** The scripts with these names do something else. */
export function inScripts(names: readonly string[], lua: Lua): Plant {
  return () => {
    const undo = names.map((name) => {
      const script = SCRIPTS.find((each) => each.name === name);
      if (!script) throw new Error(`there is no script ${name}`);
      const { modern, legacy } = script;
      Object.assign(script, { modern: withMistake(modern.text, lua), legacy: withMistake(legacy.text, lua) });
      return () => Object.assign(script, { modern, legacy });
    });
    return () => {
      for (const each of undo) each();
    };
  };
}

function withMistake(text: string, { command = "", before = "", after = "" }: Lua) {
  // The line of the flags stays the first one.
  const [, head = "", body = ""] = /^(#![^\n]*\n)?(.*)$/s.exec(text) ?? [];
  const wrong = `${head}
local untouched = redis
local function planted(run, command, ...)
  local key, first, second = ...
  ${command}
  return run(command, ...)
end
local redis = {
  call = function(...) return planted(untouched.call, ...) end,
  pcall = function(...) return planted(untouched.pcall, ...) end,
}
local function script()
${body}
end
${before}
local reply = script()
${after}
return reply`;
  return { text: wrong, sha1: createHash("sha1").update(wrong).digest("hex") };
}
