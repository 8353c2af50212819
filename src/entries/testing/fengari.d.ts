// The part of fengari that runs scripts: Lua 5.3 in JavaScript, by the C API's own names. Its strings are bytes.

declare module "fengari/src/lua.js" {
  export interface State {
    readonly fengariState: never;
  }
  export type LuaFunction = (state: State) => number;
  const lua: {
    readonly LUA_OK: number;
    readonly LUA_MULTRET: number;
    readonly LUA_REGISTRYINDEX: number;
    readonly LUA_TBOOLEAN: number;
    readonly LUA_TNUMBER: number;
    readonly LUA_TSTRING: number;
    readonly LUA_TTABLE: number;
    lua_createtable(state: State, items: number, fields: number): void;
    lua_error(state: State): number;
    lua_getfield(state: State, index: number, name: Uint8Array): number;
    lua_gettop(state: State): number;
    lua_pcall(state: State, args: number, results: number, handler: number): number;
    lua_pushboolean(state: State, value: boolean): void;
    lua_pushcfunction(state: State, fn: LuaFunction): void;
    lua_pushnumber(state: State, value: number): void;
    lua_pushstring(state: State, value: Uint8Array): void;
    lua_rawgeti(state: State, index: number, key: number): number;
    lua_rawseti(state: State, index: number, key: number): void;
    lua_setfield(state: State, index: number, name: Uint8Array): void;
    lua_setglobal(state: State, name: Uint8Array): void;
    lua_settop(state: State, index: number): void;
    lua_toboolean(state: State, index: number): boolean;
    lua_tonumber(state: State, index: number): number;
    lua_tostring(state: State, index: number): Uint8Array | null;
    lua_type(state: State, index: number): number;
  };
  export default lua;
}

declare module "fengari/src/lauxlib.js" {
  import type { LuaFunction, State } from "fengari/src/lua.js";

  const lauxlib: {
    luaL_loadbuffer(state: State, code: Uint8Array, size: number, name: Uint8Array): number;
    luaL_newstate(): State;
    luaL_ref(state: State, table: number): number;
    luaL_requiref(state: State, name: Uint8Array, open: LuaFunction, isGlobal: boolean): void;
  };
  export default lauxlib;
}

declare module "fengari/src/lobject.js" {
  import type { State } from "fengari/src/lua.js";
  export interface Value {
    readonly value: number;
    setfltvalue(value: number): void;
    setsvalue(value: object): void;
  }
  /** fengari's own modules call these by this object, so they can be replaced. */
  const lobject: {
    luaO_str2num(text: Uint8Array, into: Value): number;
    luaO_tostring(state: State, value: Value): void;
  };
  export default lobject;
}

declare module "fengari/src/lstring.js" {
  import type { State } from "fengari/src/lua.js";

  const lstring: { luaS_bless(state: State, text: Uint8Array): object };
  export default lstring;
}

/** `lbaselib.js` and the other libraries, each of which opens one. */
declare module "fengari/src/l*lib.js" {
  import type { LuaFunction } from "fengari/src/lua.js";

  const library: Readonly<
    Record<"luaopen_base" | "luaopen_math" | "luaopen_string" | "luaopen_table", LuaFunction>
  >;
  export default library;
}

declare module "fengari/src/lualib.js";
