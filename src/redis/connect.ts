/** Makes an ioredis connection; the only place that needs the class. */
import { createRequire } from "node:module";
import { type Connection, checkConnection } from "./connection.js";

/** A connection to a URL (`redis://`, `rediss://`) or by an ioredis options object. */
export function connect(target: string | object): Connection {
  if (typeof target === "string") {
    if (!/^rediss?:\/\//.test(target))
      throw new TypeError("connect takes a redis:// or rediss:// URL, or ioredis options");
    return open(target);
  }
  if (typeof target !== "object" || target === null || Array.isArray(target)) {
    throw new TypeError("connect takes a redis:// or rediss:// URL, or ioredis options");
  }
  return open(target);
}

/** ioredis is loaded here and not on top, so that the package loads without it, and bundles without its inside. */
function open(target: string | object): Connection {
  // In a CommonJS bundle import.meta is empty, and in an ES module there is no __filename.
  const load = createRequire(typeof __filename === "string" ? __filename : import.meta.url);
  let ioredis: { Redis: new (...options: (string | object)[]) => Connection };
  try {
    ioredis = load("ioredis") as typeof ioredis;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    throw new Error("LockClient.connect needs the package ioredis: npm install ioredis", { cause: error });
  }
  // Lazily, so that one that is refused here has not connected yet. Of options that differ ioredis takes the first.
  const redis = make(() => new ioredis.Redis({ lazyConnect: true }, target));
  checkConnection(redis);
  redis.connect().catch(() => {
    // ioredis tells it by its `error` event, too.
  });
  return redis;
}

/** An error of the URL parser repeats the URL, and with it the password. */
function make(connection: () => Connection): Connection {
  try {
    return connection();
  } catch (error) {
    throw new TypeError(
      `connect cannot use that: ${error instanceof Error ? error.message : "unknown error"}`,
    );
  }
}
