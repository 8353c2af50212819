/** The core of the contract on a real cluster, whose masters all have some of the locks and a replica each. */
import { afterAll, beforeAll } from "vitest";
import type { LockClientOptions } from "../../src/index.js";
import { type RedisCluster, startCluster } from "../support/index.js";
import { coreOfTheContract } from "./core.js";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster({ masters: 3, replicas: 1 });
}, 60_000);
afterAll(() => cluster?.stop());

const SHARDED: LockClientOptions["shardedPubSub"][] = ["auto", true, false];

for (const shardedPubSub of SHARDED) {
  coreOfTheContract(`shardedPubSub ${shardedPubSub}`, {
    connect: () => cluster.connect(),
    options: { shardedPubSub },
  });
}
