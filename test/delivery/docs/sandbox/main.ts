/** Runs one block, a module whose path is the argument, and ends. Every failure goes to stderr, with exit code 1. */
import { pathToFileURL } from "node:url";
import * as checks from "./checks.js";
import * as names from "./names.js";

Object.assign(globalThis, names, checks);
await import(pathToFileURL(process.argv[2] as string).href);
// Rejections that the block has left unhandled show now.
await new Promise((resolve) => setTimeout(resolve, 20));
const held = await leftHeld();
if (held.length > 0) throw new Error(`it leaves locks held: ${held.join(", ")}`);
// A block may also show how a process stops.
for (const stop of process.listeners("SIGTERM")) await stop("SIGTERM");
process.exit(0);

/**
 * The locks that the block has left held: a reader copies the block, so it must give back what it takes. Held locks are
 * hashes, but so are a client's presence and BullMQ's jobs.
 */
async function leftHeld(): Promise<string[]> {
  const keys = (await names.redis.keys("*")).filter((key) => !/^(holdfast_client|bull):/.test(key));
  const types = await Promise.all(keys.map((key) => names.redis.type(key)));
  return keys.filter((_, i) => types[i] === "hash");
}
