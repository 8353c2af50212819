/** Whether suites run on the server in memory, and what they skip there. */
import type { RedisServer } from "./redis-server.js";

/** Whether the suites should run in memory, as far as they need no real server. */
export const isMemoryWanted: boolean = process.env.HOLDFAST_TEST_CLIENT === "memory";

/** Things without a counterpart in memory: sockets, processes, and commands that the library does not send. */
const REASON = "it asks for a real server";
const REAL = ["host", "port", "url", "pause", "resume", "kill", "restart", "info", "pubsub", "sadd"];

type Skip = (note: string) => never;

/** A server or connection that skips the test as soon as the test asks for something that memory does not have. */
export function inMemory<T extends object>(what: T, skip: Skip): T {
  if (!isMemoryWanted) return what;
  return new Proxy(what, {
    get(target, name) {
      if (REAL.includes(String(name))) return skip(REASON);
      if (name !== "connect") return Reflect.get(target, name);
      // Options ask for another database, for example.
      return (options?: object) => (options ? skip(REASON) : (target as RedisServer).connect());
    },
  });
}
