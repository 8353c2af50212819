/** Sharded pub/sub, which Redis has since 7.0. */
import type { TestContext } from "vitest";
import { findRedis, hasFeaturesOf } from "./redis-binary.js";

/** Whether the tests' servers have it. */
export async function hasShardedPubSub(): Promise<boolean> {
  return hasFeaturesOf(await findRedis(), "7.0.0");
}

/** Skips the test, and says why, if its clients insist on it (`shardedPubSub: true`) and the servers lack it. */
export async function needSharded(
  shardedPubSub: boolean | "auto" | undefined,
  { skip }: Pick<TestContext, "skip">,
): Promise<void> {
  if (shardedPubSub !== true || (await hasShardedPubSub())) return;
  const { engine, version } = await findRedis();
  skip(`${engine} ${version} has no sharded pub/sub`);
}
