/** `replicas: 1` through Sentinel: a grant that was reported has reached the replica, so the next master has it. */
import { expect, test } from "vitest";
import { type Hold, LockClient, type LockClientOptions, type LockError } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  keyState,
  type RedisSentinel,
  type RedisServer,
  startSentinel,
  UNHURRIED,
  until,
  untilGone,
} from "../support/index.js";
import { type Kind, SINGLE } from "../support/place/kinds.js";
import { CALM, makeHasty } from "./sentinel-haste.js";

const DB = 2;
const PATIENCE = { timeout: 20_000 };

failOnUnhandledRejections();

interface Setup {
  readonly all: RedisSentinel;
  readonly connect: (options: LockClientOptions) => LockClient;
  readonly stop: () => Promise<void>;
}

async function setUp(): Promise<Setup> {
  const all = await startSentinel({ password: "se:cret", downAfter: CALM });
  const clients: LockClient[] = [];
  return {
    all,
    connect: (options) => {
      const client = new LockClient(all.connect({ db: DB }), { ...UNHURRIED, ...options });
      clients.push(client);
      return client;
    },
    stop: async () => {
      await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
      await all.stop();
    },
  };
}

/** The only replica. */
async function replicaOf(all: RedisSentinel): Promise<RedisServer> {
  const [replica] = await all.replicas();
  if (replica === undefined) throw new Error("no replica");
  return replica;
}

/** A master without replicas, as after a partition, stops granting if it is configured so. */
test("with min-replicas-to-write, a master without a replica in touch grants nothing [F29]", async () => {
  const { all, connect, stop } = await setUp();
  try {
    const client = connect({ commandTimeout: 4_500 });
    await client.ready();
    const master = await all.master();
    await master.call("CONFIG", "SET", "min-replicas-max-lag", 1);
    await master.call("CONFIG", "SET", "min-replicas-to-write", 1);
    const lock = client.getLock("order");
    await (await until("the replica is in touch", () => lock.lock(), PATIENCE)).unlock();
    const replica = await replicaOf(all);
    replica.pause();
    await until(
      "the master misses it",
      async () => (await refusal(master)).startsWith("NOREPLICAS"),
      PATIENCE,
    );
    const error = await failure(lock.lock());
    expect(error).toMatchObject({
      code: "UNAVAILABLE",
      cause: { message: expect.stringContaining("NOREPLICAS") },
    });
    expect(await lock.isLocked()).toBe(false);
    replica.resume();
    await (await until("it grants again", () => lock.lock(), PATIENCE)).unlock();
  } finally {
    await stop();
  }
});

/** The master's error for a write; empty if it accepts the write. */
async function refusal(master: RedisServer): Promise<string> {
  return master.call("SET", "probe", 1, "PX", 1_000).then(
    () => "",
    (error: Error) => error.message,
  );
}

test("every grant that was told before the master was killed is known to the next one [F28]", async () => {
  const { all, connect, stop } = await setUp();
  try {
    // Each lock has a lease, so that only the grant itself can have brought it to the new master.
    const client = connect({ replicas: 1, commandTimeout: 6_000 });
    const other = connect({});
    await Promise.all([client.ready(), other.ready()]);
    const told: { kind: Kind; hold: Hold }[] = [];
    const failures: Error[] = [];
    let over = false;
    const takers = SINGLE.map(async (kind) => {
      for (let i = 0; !over; i++) {
        const lock = kind.make([client], `${kind.name} ${i}`);
        await lock.lock({ lease: 120_000 }).then(
          (hold) => told.push({ kind, hold }),
          (error: Error) => failures.push(error),
        );
      }
    });
    await until("grants are told of every kind", () => {
      return SINGLE.every((kind) => told.filter((each) => each.kind === kind).length > 5);
    });
    const before = await all.master();
    await makeHasty(all);
    await before.kill();
    const after = await all.successor(before);
    over = true;
    await Promise.all(takers);
    // The new master has no replica, so it grants nothing any more.
    const redis = after.connect({ db: DB });
    for (const error of failures) {
      expect(error).toMatchObject({ code: expect.stringMatching(/^(REPLICAS|UNAVAILABLE)$/) });
      await untilGone(redis, (error as LockError).lockName);
    }
    for (const { kind, hold } of told) {
      expect((await keyState(redis, hold.lockName)).value).toEqual(kind.fields(hold.ownerId, 1));
      expect(hold.isHeld).toBe(true);
    }
    for (const { kind, hold } of told.slice(-20))
      expect(await kind.rival.make([other], hold.lockName).tryLock()).toBeNull();
    await Promise.all(told.map(({ hold }) => hold.unlock()));
    await expect(client.getLock("alone").lock()).rejects.toMatchObject({ code: "REPLICAS" });
    await all.revive(before);
    await (await until("acknowledged again", () => client.getLock("alone").lock(), PATIENCE)).unlock();
  } finally {
    await stop();
  }
});
