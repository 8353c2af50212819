declare module "luaparse" {
  /** A node of Lua code; its fields are those of its type. */
  export interface LuaNode {
    readonly type: string;
    // biome-ignore lint/suspicious/noExplicitAny: the fields differ from type to type
    readonly [field: string]: any;
  }
  const luaparse: { parse(code: string, options: { luaVersion: string }): LuaNode };
  export default luaparse;
}
