/** Locks on clients of node-redis for a master that sentinels watch. */
import { describe, expect, test } from "vitest";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { LockClient } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  forFile,
  PATIENCE,
  type RedisSentinel,
  type RedisServer,
  startSentinel,
  type TestClient,
  UNHURRIED,
  until,
} from "../support/index.js";
import { coreOfTheContract } from "../topology/core.js";
import { Clients, expectConnectedByFirstCall, expectLeftToItsUser, VERSIONS } from "./node-redis-support.js";

const LONG = { timeout: 2 * PATIENCE };
const clients = new Clients();

failOnUnhandledRejections();
// A long downAfter, so that a busy machine does not make the sentinels replace a healthy master.
const all = await forFile(startSentinel({ password: "se:cret", downAfter: 15_000 }));

/** The user has leased the only client of the master while fn runs. */
interface Leasing extends TestClient {
  use(fn: () => Promise<void>): Promise<void>;
}

function optionsFor({ sentinels, name, servers }: RedisSentinel): object {
  return {
    name,
    sentinelRootNodes: sentinels.map(({ host, port }) => ({ host, port })),
    nodeClientOptions: { password: servers[0]?.password },
  };
}

describe.each(VERSIONS)("%s", (version, redis) => {
  const make = (): TestClient => clients.add(redis.sentinel(optionsFor(all)));

  coreOfTheContract(`through Sentinel with ${version}`, { connect: () => fromNodeRedis(make()) });

  test("a client that is not connected is connected at the first call, and stays open when the LockClient closes", async () => {
    await expectConnectedByFirstCall(make());
  });

  test("a client that its user is connecting is waited for; one that was closed is not connected again", async () => {
    // In version 5, a client of sentinels cannot be connected again after its close.
    await expectLeftToItsUser(make(), version === "redis 6");
  });

  test("replicas that must acknowledge a grant, and the user's lease of the only client of the pool", async () => {
    const client = make() as Leasing;
    const options = { ...UNHURRIED, replicas: 1, replicasTimeout: PATIENCE };
    const locks = new LockClient(fromNodeRedis(client), options);
    await locks.ready();
    await client.use(() => locks.getLock("copied").run(() => {}));
    await locks.close();
  });

  test.each([
    ["before", true],
    ["after", false],
  ])(
    "a first call during such a lease, of a client that was connected %s fromNodeRedis [B197]",
    async (_, isEarly) => {
      const client = make() as Leasing;
      if (isEarly) await client.connect();
      const locks = new LockClient(fromNodeRedis(client), UNHURRIED);
      if (!isEarly) await client.connect();
      await client.use(() => locks.getLock("leased").run(() => {}));
      await locks.close();
    },
  );

  test("a first call that replicas must acknowledge connects the client", async () => {
    const locks = new LockClient(fromNodeRedis(make()), {
      ...UNHURRIED,
      replicas: 1,
      replicasTimeout: PATIENCE,
    });
    await locks.getLock("copied at first").run(() => {});
    await locks.close();
  });
});

type End = (own: RedisSentinel, master: RedisServer) => Promise<unknown>;
const ENDS: [how: string, end: End][] = [
  ["is killed", (_, master) => master.kill()],
  ["hands over", (own) => own.failover()],
];

describe.each(VERSIONS)("%s, when the master", (_, redis) => {
  test.each(ENDS)("%s: a lock is kept by the next one, and its waiter is woken there", async (_how, end) => {
    await using own = await startSentinel();
    const made = [0, 1].map(() => clients.add(redis.sentinel(optionsFor(own))));
    const options = { pollCap: 600_000, watchdogTimeout: 120_000 };
    const [ours, theirs] = made.map((client) => new LockClient(fromNodeRedis(client), options));
    if (!ours || !theirs) throw new Error("no clients");
    const hold = await ours.getLock("kept").lock();
    const { done } = await untilWaiting(theirs, () => theirs.getLock("kept").lock());
    const master = await own.master();
    const [replica] = await own.replicas();
    await until("the replica has it", async () => Number(await replica?.call("EXISTS", "kept")) === 1);
    const successor = own.successor(master);
    await end(own, master);
    await successor;
    await until("it can be extended", () => hold.extend(120_000).then(() => true), LONG);
    expect(hold.isHeld).toBe(true);
    await until("it can be given back", () => hold.unlock().then(() => true), LONG);
    await (await done).unlock();
    await Promise.all([ours.close({ timeout: 0 }), theirs.close({ timeout: 0 })]);
    for (const client of made) await client.close();
  });

  test.each(ENDS)(
    "%s while the user has leased the only client: a lock is kept all the same [B197]",
    async (_how, end) => {
      await using own = await startSentinel();
      const client = clients.add(redis.sentinel(optionsFor(own))) as Leasing;
      const locks = new LockClient(fromNodeRedis(client), { watchdogTimeout: 120_000 });
      const hold = await locks.getLock("leased").lock();
      const master = await own.master();
      const [replica] = await own.replicas();
      await until("the replica has it", async () => Number(await replica?.call("EXISTS", "leased")) === 1);
      await client.use(async () => {
        const successor = own.successor(master);
        await end(own, master);
        await successor;
        await until("it can be extended", () => hold.extend(120_000).then(() => true), LONG);
      });
      await until("it can be given back", () => hold.unlock().then(() => true), LONG);
      await locks.close({ timeout: 0 });
      await client.close();
    },
  );
});
