/** Counting once, over a table of connection options: safety lies in the scripts, not in the client's options. */
import { describe, expect, test } from "vitest";
import { nextEvent } from "../contract/helpers.js";
import { type ClientOptions, type ClusterClientOptions, STEADY, until } from "../support/index.js";
import {
  type Bed,
  type ScriptName,
  script,
  soon,
  type Topology,
  useStage,
  type Version,
  watch,
} from "./harness.js";
import { expectHeld, expectHeldBesidesMarkers, expectNothingLeft, ttlOf } from "./remains.js";

const stage = await useStage("standalone", "cluster");

interface Row {
  readonly redis?: ClientOptions;
  readonly cluster?: ClusterClientOptions;
  readonly versions?: readonly Version[];
  readonly topologies?: readonly Topology[];
}

const soonAgain = () => 20;

const rows: Record<string, Row> = {
  "default options": {},
  "enableOfflineQueue: false": {
    redis: { enableOfflineQueue: false },
    cluster: { enableOfflineQueue: false },
  },
  "maxRetriesPerRequest: null": { redis: { maxRetriesPerRequest: null } },
  "maxRetriesPerRequest: 0": { redis: { maxRetriesPerRequest: 0 } },
  "autoResendUnfulfilledCommands: false": { redis: { autoResendUnfulfilledCommands: false } },
  "autoResendUnfulfilledCommands: false, enableOfflineQueue: false": {
    redis: { autoResendUnfulfilledCommands: false, enableOfflineQueue: false },
    topologies: ["standalone"],
  },
  "commandTimeout: 300": { redis: { commandTimeout: 300 } },
  "db: 2": { redis: { db: 2 }, topologies: ["standalone"] },
  "db: 2, autoResendUnfulfilledCommands: false": {
    redis: { db: 2, autoResendUnfulfilledCommands: false },
    topologies: ["standalone"],
  },
  RESP2: { redis: { protocol: 2 }, versions: [6] },
  RESP3: { redis: { protocol: 3 }, versions: [6] },
  "enableAutoPipelining: true": {
    redis: { enableAutoPipelining: true },
    cluster: { enableAutoPipelining: true },
  },
  "enableAutoPipelining: true, autoResendUnfulfilledCommands: false, scripts left out of the pipelines": {
    redis: {
      enableAutoPipelining: true,
      autoResendUnfulfilledCommands: false,
      autoPipeliningIgnoredCommands: ["eval", "evalsha"],
    },
    topologies: ["standalone"],
  },
  "enableAutoPipelining: true, autoResendUnfulfilledCommands: false on a cluster": {
    redis: { autoResendUnfulfilledCommands: false },
    cluster: { enableAutoPipelining: true },
    topologies: ["cluster"],
  },
  // Not on a cluster: with this option ioredis compares slot numbers as text and knows only some: see cluster.test.ts.
  "stringNumbers: true": { redis: { stringNumbers: true }, topologies: ["standalone"] },
  "no retries in the cluster client": {
    cluster: { maxRedirections: 1, retryDelayOnFailover: 1 },
    topologies: ["cluster"],
  },
  "clusterNodeRetryStrategy: a node's connection comes back by itself": {
    cluster: { clusterNodeRetryStrategy: soonAgain },
    topologies: ["cluster"],
  },
  "clusterNodeRetryStrategy, autoResendUnfulfilledCommands: false [B200]": {
    redis: { autoResendUnfulfilledCommands: false },
    cluster: { clusterNodeRetryStrategy: soonAgain },
    topologies: ["cluster"],
  },
};

const table = Object.entries(rows).flatMap(([name, row]) =>
  (row.topologies ?? (["standalone", "cluster"] as const)).flatMap((topology) =>
    (row.versions ?? ([6, 5] as const)).map((version) => ({ name, topology, version, row })),
  ),
);

/** The whole life of a lock, in which the reply to each operation is lost once. */
async function liveThroughCuts(bed: Bed): Promise<void> {
  const { client, lock, name, proxy } = bed;
  const cut = async <T>(operation: ScriptName, call: () => Promise<T>): Promise<T> => {
    const fault = proxy.cutReplyOf(script(operation, name));
    const value = await call();
    await fault.done;
    return value;
  };
  await client.scope(async () => {
    const outer = await cut("take", () => lock.lock());
    await expectHeld(bed, outer.ownerId, 1);
    await cut("keep", () => lock.lock());
    await expectHeld(bed, outer.ownerId, 2);
    await cut("keep", () => nextEvent(client, "renewed"));
    await expectHeldBesidesMarkers(bed, outer.ownerId, 2);
    await cut("keep", () => lock.unlock());
    await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
    await cut("keep", () => outer.extend(60_000));
    await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
    expect(await ttlOf(bed)).toBeGreaterThan(50_000);
    await cut("end", () => lock.unlock());
    await expectNothingLeft(bed, 20_000);
  });
}

describe.concurrent("each operation counts once though its reply is lost [F1] [F2] [F4] [F5] [F9]", () => {
  test.each(table)("$topology, ioredis $version, $name", async ({ topology, version, row }) => {
    await using bed = await stage.bed({ topology, version, ...row, client: { watchdogTimeout: STEADY } });
    await liveThroughCuts(bed);
    expect(bed.troubles).toEqual([]);
  });
});

describe.concurrent("waiting works, and a waiter is woken [F9]", () => {
  test.each(table)("$topology, ioredis $version, $name", async ({ topology, version, row }) => {
    await using bed = await stage.bed({ topology, version, ...row, client: { pollCap: 60_000 } });
    const hold = await bed.lock.lock();
    const waiting = watch(bed.lock.lock());
    // The waiter is in the queue, and has tried again since its subscription was confirmed.
    const tries = () => bed.proxy.count(script("take", bed.name));
    await until("the waiter is parked", () => tries() >= 3);
    await hold.unlock();
    const next = await soon(waiting);
    await next.unlock();
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });
});
