/** Locks on clients of node-redis for a master that sentinels watch. */
import { describe, expect, test } from "vitest";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  forFile,
  forTest,
  nodeRedis,
  PATIENCE,
  type RedisSentinel,
  startSentinel,
  type TestClient,
  UNHURRIED,
  until,
} from "../support/index.js";
import { Clients, expectLeftToItsUser, twoClients, VERSIONS } from "./node-redis-support.js";

const LONG = { timeout: 2 * PATIENCE };
const REPLICATED = { ...UNHURRIED, replicas: 1, replicasTimeout: PATIENCE };
const clients = new Clients();

failOnUnhandledRejections();
// A long downAfter, so that a busy machine does not make the sentinels replace a healthy master.
const all = await forFile(startSentinel({ password: "se:cret", downAfter: 15_000 }));

/** The user has leased the only client of the master while fn runs. */
interface Leasing extends TestClient {
  use(fn: () => Promise<void>): Promise<void>;
}

function make({ sentinels, name, servers }: RedisSentinel = all, redis = nodeRedis(6)): Leasing {
  const sentinelRootNodes = sentinels.map(({ host, port }) => ({ host, port }));
  const nodeClientOptions = { password: servers[0]?.password };
  return clients.add(redis.sentinel({ name, sentinelRootNodes, nodeClientOptions }));
}

async function handOver(own: RedisSentinel): Promise<void> {
  const before = await own.master();
  await own.failover();
  // Until it follows the new one, it takes writes of clients that have not moved yet, and loses them.
  await until("it follows", async () => (await before.info("replication")).get("role") === "slave");
}

const locksOn = (client: TestClient, options: LockClientOptions = UNHURRIED) =>
  forTest(new LockClient(fromNodeRedis(client), options));

describe.each(VERSIONS)("%s", (_, redis) => {
  test("a client is connected by the first call and otherwise left to its user, whose close touches no lock", async () => {
    await expectLeftToItsUser(() => make(all, redis));
  });
});

test("a first call that replicas must acknowledge connects the client", async () => {
  await locksOn(make(), REPLICATED)
    .getLock("copied at first")
    .run(() => {});
});

test.each([
  ["before", true],
  ["after", false],
])(
  "a lock is taken and acknowledged while the user leases the only client, connected %s fromNodeRedis [B197]",
  async (_, isEarly) => {
    const client = make();
    if (isEarly) await client.connect();
    const [locks, replicated] = [locksOn(client), locksOn(client, REPLICATED)];
    if (!isEarly) await client.connect();
    await client.use(() => locks.getLock("leased").run(() => {}));
    await replicated.ready();
    await client.use(() => replicated.getLock("copied").run(() => {}));
  },
);

test.each<[how: string, end: (own: RedisSentinel) => Promise<unknown>]>([
  ["is killed", async (own) => (await own.master()).kill()],
  ["hands over", handOver],
])(
  "a lock is kept and its waiter woken by the next master when one %s, also while the user leases the holder's only client [B197]",
  async (how, end) => {
    const own = how === "is killed" ? forTest(await startSentinel()) : all;
    const made = [make(own), make(own)] as const;
    const left = [...made];
    const connect = () => fromNodeRedis(left.shift() as TestClient);
    const [ours, theirs] = twoClients(connect, { pollCap: 600_000, watchdogTimeout: 120_000 });
    const hold = await ours.getLock("kept").lock();
    const { done } = await untilWaiting(theirs, () => theirs.getLock("kept").lock());
    const [replica] = await own.replicas();
    await until("the replica has it", async () => Number(await replica?.call("EXISTS", "kept")) === 1);
    await made[0].use(async () => {
      const successor = own.successor(await own.master());
      await end(own);
      await successor;
      await until("it can be extended", () => hold.extend(120_000).then(() => true), LONG);
    });
    expect(hold.isHeld).toBe(true);
    await until("it can be given back", () => hold.unlock().then(() => true), LONG);
    await (await done).unlock();
    await Promise.all([ours.close({ timeout: 0 }), theirs.close({ timeout: 0 })]);
    for (const client of made) await client.close();
  },
);
