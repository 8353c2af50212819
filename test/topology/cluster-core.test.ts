/** The core of the contract on a real cluster: each master has some of the locks, and a replica. */
import { beforeEach, describe } from "vitest";
import type { LockClientOptions } from "../../src/index.js";
import { forFile, needSharded, startCluster } from "../support/index.js";
import { coreOfTheContract } from "./core.js";

const cluster = await forFile(startCluster({ masters: 3, replicas: 1 }));

const SHARDED: LockClientOptions["shardedPubSub"][] = ["auto", true, false];
/** Names with spaces, with braces, and not in ASCII: all keys of a lock share a slot, and its messages arrive. */
const ENDINGS = ["order 7", "{user}:7", "a{b}c:d", "größe"];

describe.each(SHARDED)("shardedPubSub %s", (shardedPubSub) => {
  beforeEach((context) => needSharded(shardedPubSub, context));

  coreOfTheContract("on a cluster", {
    connect: () => cluster.connect(),
    options: { shardedPubSub },
    endings: ENDINGS,
  });
});
