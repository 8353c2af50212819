/** Makes an ioredis connection; the only place that needs the class. */
import nodeModule from "node:module";
import { type Connection, checkConnection } from "./connection.js";
import * as late from "./load-ioredis.cjs";

interface Ioredis {
  readonly Redis: { new (...options: (string | object)[]): Connection };
}

/**
 * A connection to a URL (`redis://`, `rediss://`) or by an ioredis options object. It never connects: the client makes its
 * own from it.
 */
export function connectionTo(target: string | object): Connection {
  if (!isTarget(target)) {
    throw new TypeError(
      "connect takes a redis:// or rediss:// URL (a string, its path the number of a database) or ioredis options; a " +
        "connection or Cluster goes into new LockClient(connection)",
    );
  }
  const { Redis } = loadIoredis();
  try {
    // ioredis takes the first of options that differ.
    return checkConnection(new Redis({ lazyConnect: true }, target));
  } catch (error) {
    // Only the text: the error of the URL parser carries the URL, and with it the password.
    throw new TypeError(`connect cannot use that: ${(error as Error).message}`);
  }
}

/** False for what ioredis would pass over: it would connect to its default address instead. */
function isTarget(target: unknown): boolean {
  // Of any other path than a number ioredis makes the database NaN.
  if (typeof target === "string") return /^rediss?:\/\/[^/?#]*(\/\d*)?([?#]|$)/.test(target);
  if (typeof target !== "object" || target === null || Array.isArray(target)) return false;
  // A URL object, a connection, options of the package redis.
  return !["href", "duplicate", "url"].some((name) => name in target);
}

/** Loads ioredis here and not at import, so that the package loads without ioredis. */
function loadIoredis(): Ioredis {
  try {
    // A bundle has ioredis inside, or else next to itself. In a CommonJS bundle import.meta may be empty, and an ES
    // module has no __filename. A bundle may declare a `createRequire` of its own, so this file imports none by that
    // name.
    return (late.loadIoredis?.() ??
      nodeModule.createRequire(import.meta.url ?? __filename)("ioredis")) as Ioredis;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    throw new Error("LockClient.connect needs ioredis: npm install ioredis", { cause: error });
  }
}
