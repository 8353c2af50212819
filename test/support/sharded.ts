/** Sharded pub/sub, which Redis has since version 7.0. */
import type { TestContext } from "vitest";
import type { LockClientOptions } from "../../src/index.js";
import { findRedis, hasFeaturesOf } from "./redis-binary.js";

type Option = LockClientOptions["shardedPubSub"];

/** Whether the tests' servers have sharded pub/sub. */
export async function hasShardedPubSub(): Promise<boolean> {
  return hasFeaturesOf(await findRedis(), "7.0.0");
}

/** Whether clients with this option use sharded channels on the tests' servers. */
export async function isSharded(shardedPubSub: Option): Promise<boolean> {
  return shardedPubSub !== false && (await hasShardedPubSub());
}

/** Skips the test, with the reason, if its clients demand it (`shardedPubSub: true`) and the servers lack it. */
export async function needSharded(shardedPubSub: Option, { skip }: Pick<TestContext, "skip">): Promise<void> {
  if (shardedPubSub !== true || (await hasShardedPubSub())) return;
  const { engine, version } = await findRedis();
  skip(`${engine} ${version} has no sharded pub/sub`);
}
