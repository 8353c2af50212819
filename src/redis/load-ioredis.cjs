// This file is CommonJS, because every bundler finds a package that such a file requires late; inside `try` the package
// may be missing. Rollup without its plugin for CommonJS takes the file for an ES module, which has no `exports`.
if (typeof exports === "object") {
  exports.loadIoredis = () => {
    try {
      return require("ioredis");
    } catch {
      return undefined;
    }
  };
}
