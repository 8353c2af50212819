/** Counting once over a table of connection options: the scripts carry the safety, not the options of the client. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ClientOptions, type ClusterClientOptions, STEADY, until } from "../support/index.js";
import {
  type Bed,
  failOnUnhandledRejections,
  type ScriptName,
  Stage,
  script,
  soon,
  type Topology,
  type Version,
  watch,
} from "./harness.js";
import { expectHeld, expectHeldBesidesMarkers, expectNothingLeft } from "./remains.js";

let stage: Stage;

failOnUnhandledRejections();
beforeAll(async () => {
  stage = await Stage.start(["standalone", "cluster"]);
});
afterAll(() => stage[Symbol.asyncDispose]());

interface Row {
  readonly redis?: ClientOptions;
  readonly cluster?: ClusterClientOptions;
  readonly versions?: readonly Version[];
  readonly topologies?: readonly Topology[];
}

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
  RESP2: { redis: { protocol: 2 }, versions: [6] },
  RESP3: { redis: { protocol: 3 }, versions: [6] },
  "enableAutoPipelining: true": {
    redis: { enableAutoPipelining: true },
    cluster: { enableAutoPipelining: true },
  },
  // On a cluster ioredis itself compares slot numbers as text then, and knows only some of them: see cluster.test.ts.
  "stringNumbers: true": { redis: { stringNumbers: true }, topologies: ["standalone"] },
  "no retries in the cluster client": {
    cluster: { maxRedirections: 1, retryDelayOnFailover: 1 },
    topologies: ["cluster"],
  },
};

const table = Object.entries(rows).flatMap(([name, row]) =>
  (row.topologies ?? (["standalone", "cluster"] as const)).flatMap((topology) =>
    (row.versions ?? ([6, 5] as const)).map((version) => ({ name, topology, version, row })),
  ),
);

/** A whole life of a lock in which the reply to each operation is lost once. */
async function liveThroughCuts(bed: Bed): Promise<void> {
  const { client, lock, name, proxy } = bed;
  const cut = (operation: ScriptName) => proxy.cutReplyOf(script(operation, name));
  await client.scope(async () => {
    let fault = cut("acquire");
    const outer = await lock.lock();
    await fault.done;
    await expectHeld(bed, outer.ownerId, 1);

    fault = cut("reenter");
    await lock.lock();
    await fault.done;
    await expectHeld(bed, outer.ownerId, 2);

    fault = cut("renew");
    await new Promise<void>((resolve) => client.once("renewed", () => resolve()));
    await fault.done;
    await expectHeldBesidesMarkers(bed, outer.ownerId, 2);

    fault = cut("release");
    await lock.unlock();
    await fault.done;
    await expectHeldBesidesMarkers(bed, outer.ownerId, 1);

    fault = cut("extend");
    await outer.extend(60_000);
    await fault.done;
    await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
    expect((await bed.keys())[name]?.ttl).toBeGreaterThan(50_000);

    fault = cut("release");
    await lock.unlock();
    await fault.done;
    await expectNothingLeft(bed, 20_000);
  });
}

describe.concurrent("each operation counts once though its reply is lost", () => {
  test.each(table)("$topology, ioredis $version, $name", async ({ topology, version, row }) => {
    const { redis = {}, cluster = {} } = row;
    await using bed = await stage.bed({
      topology,
      version,
      redis,
      cluster,
      client: { watchdogTimeout: STEADY },
    });
    await liveThroughCuts(bed);
    expect(bed.troubles).toEqual([]);
  });
});

describe.concurrent("waiting works, and a waiter is woken", () => {
  test.each(table)("$topology, ioredis $version, $name", async ({ topology, version, row }) => {
    const { redis = {}, cluster = {} } = row;
    await using bed = await stage.bed({ topology, version, redis, cluster, client: { pollCap: 60_000 } });
    const hold = await bed.lock.lock();
    const waiting = watch(bed.lock.lock());
    // It is in the line and has asked again since its subscription was confirmed.
    const tries = () => bed.proxy.count(script("acquire", bed.name));
    await until("the waiter is parked", () => tries() >= 3);
    await hold.unlock();
    const next = await soon(waiting);
    await next.unlock();
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });
});
