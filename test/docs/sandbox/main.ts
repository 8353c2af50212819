/** Runs one block, a module whose path is the argument, and ends. Whatever is wrong goes to stderr, with exit code 1. */
import { pathToFileURL } from "node:url";
import * as checks from "./checks.js";
import * as names from "./names.js";

Object.assign(globalThis, names, checks);
await import(pathToFileURL(process.argv[2] as string).href);
// What it left to reject unhandled shows now.
await new Promise((resolve) => setTimeout(resolve, 20));
const held = await leftHeld();
if (held.length > 0) throw new Error(`it leaves locks held: ${held.join(", ")}`);
// How a process stops is shown as well.
for (const stop of process.listeners("SIGTERM")) await stop("SIGTERM");
process.exit(0);

/** A reader copies what a block does, so it has to give back what it took. Held locks are hashes, as is what a client tells of itself, and BullMQ's jobs. */
async function leftHeld(): Promise<string[]> {
  const keys = (await names.redis.keys("*")).filter((key) => !/^(holdfast_client|bull):/.test(key));
  const types = await Promise.all(keys.map((key) => names.redis.type(key)));
  return keys.filter((_, i) => types[i] === "hash");
}
