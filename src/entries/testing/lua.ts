/**
 * Runs Lua as a Redis server does. Redis has Lua 5.1, whose numbers are all doubles; fengari is 5.3 with integers of 32
 * bits. So numbers are made doubles where they begin (in literals, and in texts that are used as numbers), and are
 * written as 5.1 writes them.
 */
/// <reference path="./fengari.d.ts" />
import type { State } from "fengari/src/lua.js";
import { lauxlib, lbaselib, lmathlib, lobject, lstring, lstrlib, ltablib, lua } from "./lua-vm.js";
import { formatNumber, strtod } from "./numbers.js";
import { type Reply, ReplyError, Status } from "./reply.js";

/** Runs a command of a script. @throws ReplyError */
export type CallCommand = (args: readonly string[]) => Reply;

/** Digits that 5.1 writes of a number, and that Redis writes of one that is passed to a command. */
const LUA_DIGITS = 14;
const REDIS_DIGITS = 17;

/**
 * What 5.3 does otherwise than 5.1. Its tostring writes 1 as "1.0", but its `..` does not. Its math.max and math.min
 * compare texts as texts, where 5.1 makes numbers of them. Its math.floor makes an integer, which has no -0.
 */
const PRELUDE = `unpack = table.unpack
local tell = tostring
function tostring(value)
  if type(value) == 'number' then return value .. '' end
  return tell(value)
end
for _, name in ipairs {'max', 'min'} do
  local choose = math[name]
  math[name] = function(...)
    local numbers = {...}
    for i = 1, select('#', ...) do numbers[i] = numbers[i] * 1 end
    return choose(unpack(numbers))
  end
end
local floor = math.floor
function math.floor(value)
  local number = value * 1
  return number == 0 and number or floor(number) * 1
end`;

const NAME = bytesOf("@user_script");
const ARGUMENT_ERROR = "ERR Lua redis lib command arguments must be strings or integers";

lobject.luaO_str2num = (text, into) => {
  const [numeral = ""] = textOf(text).split("\0");
  const number = strtod(numeral);
  if (!number || numeral.slice(number.length).trim() !== "") return 0;
  into.setfltvalue(number.value);
  return text.length + 1;
};
lobject.luaO_tostring = (state, number) => {
  const text = formatNumber(number.value, LUA_DIGITS);
  number.setsvalue(lstring.luaS_bless(state, bytesOf(text)));
};

export class Lua {
  readonly #state: State = lauxlib.luaL_newstate();
  /** The scripts by text: their places in the registry. */
  readonly #compiled = new Map<string, number>();
  #call: CallCommand = () => null;

  constructor() {
    const state = this.#state;
    const libraries = [
      ["_G", lbaselib.luaopen_base],
      ["table", ltablib.luaopen_table],
      ["string", lstrlib.luaopen_string],
      ["math", lmathlib.luaopen_math],
    ] as const;
    for (const [name, open] of libraries) lauxlib.luaL_requiref(state, bytesOf(name), open, true);
    lua.lua_settop(state, 0);
    this.#load(PRELUDE);
    lua.lua_pcall(state, 0, 0, 0);
    lua.lua_createtable(state, 0, 2);
    lua.lua_pushcfunction(state, () => this.#command(true));
    lua.lua_setfield(state, -2, bytesOf("call"));
    lua.lua_pushcfunction(state, () => this.#command(false));
    lua.lua_setfield(state, -2, bytesOf("pcall"));
    lua.lua_setglobal(state, bytesOf("redis"));
  }

  /** Runs a script. @throws ReplyError as Redis tells it, without the script's hash and line behind it */
  run(script: string, keys: readonly string[], args: readonly string[], call: CallCommand): Reply {
    const state = this.#state;
    this.#call = call;
    this.#setTexts("KEYS", keys);
    this.#setTexts("ARGV", args);
    this.#pushCompiled(script);
    const status = lua.lua_pcall(state, 0, 1, 0);
    const reply = this.#reply(-1);
    lua.lua_settop(state, 0);
    if (status !== lua.LUA_OK) {
      throw reply instanceof ReplyError ? reply : new ReplyError(`ERR ${String(reply)}`);
    }
    if (reply instanceof ReplyError) throw reply;
    return reply;
  }

  #pushCompiled(script: string): void {
    let place = this.#compiled.get(script);
    if (place === undefined) {
      this.#load(script);
      place = lauxlib.luaL_ref(this.#state, lua.LUA_REGISTRYINDEX);
      this.#compiled.set(script, place);
    }
    lua.lua_rawgeti(this.#state, lua.LUA_REGISTRYINDEX, place);
  }

  #load(script: string): void {
    const code = bytesOf(script);
    if (lauxlib.luaL_loadbuffer(this.#state, code, code.length, NAME) === lua.LUA_OK) return;
    const why = String(this.#reply(-1));
    lua.lua_settop(this.#state, 0);
    throw new ReplyError(`ERR Error compiling script (new function): ${why}`);
  }

  #setTexts(name: string, texts: readonly string[]): void {
    lua.lua_createtable(this.#state, texts.length, 0);
    for (const [i, text] of texts.entries()) {
      lua.lua_pushstring(this.#state, bytesOf(text));
      lua.lua_rawseti(this.#state, -2, i + 1);
    }
    lua.lua_setglobal(this.#state, bytesOf(name));
  }

  /** `redis.call` raises the errors that `redis.pcall` returns. */
  #command(raises: boolean): number {
    const reply = this.#answer();
    this.#push(reply);
    return raises && reply instanceof ReplyError ? lua.lua_error(this.#state) : 1;
  }

  #answer(): Reply {
    const args: string[] = [];
    for (let i = 1; i <= lua.lua_gettop(this.#state); i++) {
      const arg = this.#argument(i);
      if (arg === undefined) return new ReplyError(ARGUMENT_ERROR);
      args.push(arg);
    }
    try {
      return this.#call(args);
    } catch (error) {
      if (error instanceof ReplyError) return error;
      throw error;
    }
  }

  #argument(index: number): string | undefined {
    const type = lua.lua_type(this.#state, index);
    if (type === lua.LUA_TNUMBER) return formatNumber(lua.lua_tonumber(this.#state, index), REDIS_DIGITS);
    const text = type === lua.LUA_TSTRING ? lua.lua_tostring(this.#state, index) : null;
    return text === null ? undefined : textOf(text);
  }

  #push(reply: Reply): void {
    const state = this.#state;
    if (reply === null) lua.lua_pushboolean(state, false);
    else if (typeof reply === "string") lua.lua_pushstring(state, bytesOf(reply));
    else if (typeof reply === "number" || typeof reply === "bigint") lua.lua_pushnumber(state, Number(reply));
    else {
      lua.lua_createtable(state, 0, 0);
      if (reply instanceof Status) this.#setField("ok", reply.text);
      else if (reply instanceof ReplyError) this.#setField("err", reply.message);
      else {
        for (const [i, item] of reply.entries()) {
          this.#push(item);
          lua.lua_rawseti(state, -2, i + 1);
        }
      }
    }
  }

  #setField(name: string, text: string): void {
    lua.lua_pushstring(this.#state, bytesOf(text));
    lua.lua_setfield(this.#state, -2, bytesOf(name));
  }

  /** The reply that Redis makes of a value: numbers lose their fractions, lists end at the first nil, false is nil. */
  #reply(index: number): Reply {
    const state = this.#state;
    const type = lua.lua_type(state, index);
    if (type === lua.LUA_TSTRING) return textOf(lua.lua_tostring(state, index) as Uint8Array);
    if (type === lua.LUA_TNUMBER) return toInteger(lua.lua_tonumber(state, index));
    if (type === lua.LUA_TBOOLEAN) return lua.lua_toboolean(state, index) ? 1 : null;
    if (type !== lua.LUA_TTABLE) return null;
    const err = this.#field("err");
    if (err !== undefined) return new ReplyError(err);
    const ok = this.#field("ok");
    if (ok !== undefined) return new Status(ok);
    const items: Reply[] = [];
    // Nil has the type 0.
    while (lua.lua_rawgeti(state, -1, items.length + 1) !== 0) {
      items.push(this.#reply(-1));
      lua.lua_settop(state, -2);
    }
    lua.lua_settop(state, -2);
    return items;
  }

  /** A text in the table on top. */
  #field(name: string): string | undefined {
    const type = lua.lua_getfield(this.#state, -1, bytesOf(name));
    const text = type === lua.LUA_TSTRING ? lua.lua_tostring(this.#state, -1) : null;
    lua.lua_settop(this.#state, -2);
    return text === null ? undefined : textOf(text);
  }
}

/** An integer of 64 bits; for a number that fits none, what x86 makes of it. */
function toInteger(number: number): bigint {
  return Math.abs(number) < 2 ** 63 ? BigInt(Math.trunc(number)) : -(2n ** 63n);
}

/** Not a Buffer: fengari takes arrays of its own realm only, and Node's are of another where each test file has a realm. */
function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function textOf(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
