/** Blocks as a page would have them. */
import { type Block, blocksOf } from "./pages.js";

/** The block of a page whose fence is on line 3. */
export function planted(language: string, ...code: string[]): Block {
  const text = ["# Page", "", `\`\`\`${language}`, ...code, "```", ""].join("\n");
  const [only] = blocksOf({ file: "docs/page.md", text });
  if (!only) throw new Error("no block");
  return only;
}

/** A program without a fault. */
export const GOOD: Block = planted(
  "ts",
  'import { LockClient } from "holdfast";',
  'import { Redis } from "ioredis";',
  "const client = new LockClient(new Redis());",
  '{ await using hold = await client.getLock("a").lock(); // given back here',
  "  hold.isHeld; // → true",
  "}",
  'const held = await client.getLock("a").isLocked(); // → false',
  "held;",
  "await lock.unlock(); // rejects NOT_OWNER",
  "lock; // → Lock (a class)",
  "await lock.tryLock().then((hold) => hold?.unlock()); // → undefined or null",
);
