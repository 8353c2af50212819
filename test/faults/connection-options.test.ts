/** Counting once, over a table of connections: safety lies in the scripts. */
import { describe, expect, test } from "vitest";
import { nextEvent } from "../contract/helpers.js";
import { type ClientOptions, STEADY } from "../support/index.js";
import { type Bed, type ScriptName, script, type Topology, useStage, type Version } from "./harness.js";
import { expectHeld, expectHeldBesidesMarkers, expectNothingLeft, ttlOf } from "./remains.js";

const stage = await useStage("standalone", "cluster");

/** Options of the given connection that the client's own have, too; others it chooses itself. */
interface Row {
  readonly redis?: ClientOptions;
  readonly versions?: readonly Version[];
  readonly topologies?: readonly Topology[];
}

const rows: Record<string, Row> = {
  "default options": {},
  "db: 2": { redis: { db: 2 }, topologies: ["standalone"] },
  RESP2: { redis: { protocol: 2 }, versions: [6] },
  RESP3: { redis: { protocol: 3 }, versions: [6] },
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
