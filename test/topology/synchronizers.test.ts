/** Semaphores and latches on servers whose masters change: writes that had reached the replica are on the new master. */
import { expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { politeFailover, startCluster, startSentinel, UNHURRIED, until } from "../support/index.js";
import { CALM, makeHasty } from "./sentinel-haste.js";

failOnUnhandledRejections();

const FAR = 60_000;
const NAMES = ["desks", "spaces", "start"];

/** Resolves when the client has told that many times that a call waits. */
function untilWaiting(client: LockClient, times: number): Promise<void> {
  let left = times;
  return new Promise((resolve) => {
    client.on("waiting", () => --left === 0 && resolve());
  });
}

/** One client has all permits and the latch's count; another one waits for all of them. */
async function scene(client: LockClient, other: LockClient) {
  const [semaphore, permits, latch] = [
    client.getSemaphore("desks"),
    client.getPermitExpirableSemaphore("spaces"),
    client.getCountDownLatch("start"),
  ];
  await semaphore.trySetPermits(1);
  await semaphore.acquire();
  await permits.trySetPermits(1);
  const id = await permits.acquire();
  await latch.trySetCount(1);
  const waiting = untilWaiting(other, 3);
  const waits = Promise.all([
    other.getSemaphore("desks").acquire(),
    other.getPermitExpirableSemaphore("spaces").acquire({ lease: FAR }),
    other.getCountDownLatch("start").await(),
  ]);
  await waiting;
  const end = async () => {
    await Promise.all([semaphore.release(), permits.release(id), latch.countDown()]);
    const [, permit, opened] = await waits;
    expect(opened).toBe(true);
    await other.getSemaphore("desks").release();
    expect(await other.getPermitExpirableSemaphore("spaces").tryRelease(permit)).toBe(true);
    expect(await semaphore.availablePermits()).toBe(1);
    expect(await permits.availablePermits()).toBe(1);
    expect(await latch.getCount()).toBe(0);
  };
  return { end };
}

const options: LockClientOptions = { ...UNHURRIED, watchdogTimeout: 30_000 };

const makers = {
  "a master that Sentinel replaces when it is killed": async () => {
    const all = await startSentinel({ downAfter: CALM });
    const fail = async (client: LockClient) => {
      const master = await all.master();
      await until("a replica has all that came before", async () => {
        const connection = master.connect();
        await connection.incr("mark");
        return (await connection.wait(1, 1_000)) >= 1;
      });
      await makeHasty(all);
      await all.killMaster();
      await until(
        "the client is at the new master",
        async () => (await client.getLock("any").isLocked()) === false,
      );
    };
    return { servers: all, fail };
  },
  "masters of a cluster that hand over": async () => {
    const cluster = await startCluster({ masters: 3, replicas: 1 });
    const fail = async () => {
      for (const key of NAMES) {
        const isOfTheFirst = cluster.nodes.indexOf(await cluster.masterFor(key)) < 3;
        if (isOfTheFirst) await politeFailover(cluster, key);
      }
    };
    return { servers: cluster, fail };
  },
};

test.each(Object.entries(makers))("permits and a latch, held and awaited, outlive %s", async (_, make) => {
  const { servers, fail } = await make();
  const [client, other] = [
    new LockClient(servers.connect(), options),
    new LockClient(servers.connect(), options),
  ];
  try {
    const lost: unknown[] = [];
    client.on("lost", (event) => lost.push(event));
    const { end } = await scene(client, other);
    await fail(client);
    await end();
    expect(lost).toEqual([]);
  } finally {
    await Promise.all([client, other].map((each) => each.close({ timeout: 0 })));
    await servers.stop();
  }
});
