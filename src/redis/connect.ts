/** Makes an ioredis connection; the only place that needs the class. */
import nodeModule from "node:module";
import { received } from "../base/arguments.js";
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
  const advice = adviceOn(target);
  if (advice !== undefined)
    throw new TypeError(`connect takes a redis:// or rediss:// URL, or ioredis options${advice}`);
  const { Redis } = loadIoredis();
  try {
    // ioredis takes the first of options that differ.
    return checkConnection(new Redis({ lazyConnect: true }, target));
  } catch (error) {
    // Only the text: the error of the URL parser carries the URL, and with it the password.
    throw new TypeError(`connect cannot use that: ${(error as Error).message}`);
  }
}

/** What to do about a target that ioredis would pass over: it would connect to its default address instead. */
function adviceOn(target: unknown): string | undefined {
  if (typeof target === "string") {
    if (!/^rediss?:\/\//.test(target)) return "";
    // Of any other path ioredis makes the database NaN.
    const isNumber = /^rediss?:\/\/[^/?#]*(\/\d*)?([?#]|$)/.test(target);
    return isNumber ? undefined : "; the path of a URL is the number of a database";
  }
  if (typeof target !== "object" || target === null) return `, not ${received(target)}`;
  if (Array.isArray(target)) return "; the nodes of a cluster go into new LockClient(new Cluster(nodes))";
  if (target instanceof URL) return "; of a URL object give its href";
  if ("duplicate" in target) return "; a connection goes into new LockClient(connection)";
  return "url" in target ? "; give the URL itself, not as an option" : undefined;
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
    throw new Error("LockClient.connect needs the package ioredis: npm install ioredis", { cause: error });
  }
}
