/**
 * Ways to plant a mistake: other scripts, another clock, other options, other locks. Each returns what removes it. The
 * fleet plants the mistakes of planted.lua, too.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
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
export interface Lua {
  readonly command?: string;
  readonly before?: string;
  readonly after?: string;
}

/** A mistake of planted.lua, which says how it is written. */
export interface InScripts {
  readonly name: string;
  readonly what: string;
  /** The kind and the seed of the schedules that find it, and more. */
  readonly found: string;
  readonly scripts: readonly string[];
  readonly lua: Lua;
}

const LIST = readFileSync(new URL("planted.lua", import.meta.url), "utf8");

export const IN_SCRIPTS: readonly InScripts[] = LIST.trim().split("\n\n").slice(1).map(read);

function read(block: string): InScripts {
  const [title = "", what = "", ...lines] = block.split("\n").map((line) => line.replace(/^-- /, ""));
  const [name = "", found = "", scripts = ""] = title.split(" | ");
  const place = /^--- (before|after)$/.exec(lines[0] ?? "")?.[1] ?? "command";
  return { name, what, found, scripts: scripts.split(" "), lua: { [place]: lines.join("\n") } };
}

interface Text {
  readonly text: string;
  readonly sha1: string;
}

export interface Replaceable extends Text {
  readonly name: string;
}

const SCRIPTS = Object.values(generated) as readonly Replaceable[];

export function scriptOf(name: string): Replaceable {
  const script = SCRIPTS.find((each) => each.name === name);
  if (!script) throw new Error(`there is no script ${name}`);
  return script;
}

/** The scripts with these names do something else. */
export function inScripts(names: readonly string[], lua: Lua): Plant {
  return () => {
    const undo = names.map((name) => {
      const script = scriptOf(name);
      const { text, sha1 } = script;
      plantIn(script, withMistake(text, lua));
      return () => plantIn(script, { text, sha1 });
    });
    return () => {
      for (const each of undo) each();
    };
  };
}

/** The hash of a script is a getter, and is no other one for another text. */
function plantIn(script: Replaceable, { text, sha1 }: Text): void {
  Object.defineProperties(script, { text: { value: text }, sha1: { value: sha1, configurable: true } });
}

export function withMistake(text: string, { command = "", before = "", after = "" }: Lua): Text {
  const wrong = `
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
${text}
end
${before}
local reply = script()
${after}
return reply`;
  return { text: wrong, sha1: createHash("sha1").update(wrong).digest("hex") };
}
