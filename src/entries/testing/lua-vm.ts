/** What lua.ts needs of fengari, as a file of its own: both forms of the package load the same one. */
/// <reference path="./fengari.d.ts" />
import lua from "fengari/src/lua.js";
import "fengari/src/lualib.js";

// fengari's modules import each other: the two above have to be the first.

import lauxlib from "fengari/src/lauxlib.js";
import lbaselib from "fengari/src/lbaselib.js";
import lmathlib from "fengari/src/lmathlib.js";
import lobject from "fengari/src/lobject.js";
import lstring from "fengari/src/lstring.js";
import lstrlib from "fengari/src/lstrlib.js";
import ltablib from "fengari/src/ltablib.js";

// Not `export … from`: an ES module finds the names of a CommonJS file only where they are assigned.
export { lauxlib, lbaselib, lmathlib, lobject, lstring, lstrlib, ltablib, lua };
