/**
 * These tests run contract section 5 on real servers and connections: waiters on a cluster, a server that is killed, and
 * whose clock decides. What becomes of a command whose connection breaks is the same for all kinds (test/faults).
 */
import { expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../../src/index.js";
import { nextEvent, untilWaiting } from "../../contract/helpers.js";
import { failOnUnhandledRejections, freshName, script } from "../../faults/harness.js";
import {
  type FaultProxy,
  forFile,
  forTest,
  ownConnections,
  startCluster,
  startClusterProxy,
  startProxy,
  startRedis,
  until,
} from "../../support/index.js";
import { NEVER } from "./place.js";

failOnUnhandledRejections();
const [server, cluster] = await Promise.all([forFile(startRedis()), forFile(startCluster())]);

/** Clients of the cluster, past all proxies. */
async function onCluster(options: LockClientOptions = {}): Promise<[LockClient, LockClient]> {
  const make = () => forTest(new LockClient(cluster.connect(), { pollCap: NEVER, ...options }));
  const clients: [LockClient, LockClient] = [make(), make()];
  for (const client of clients) await until("it is ready", () => client.ready().then(() => true));
  return clients;
}

const shapes: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => `{${name}}:rest`,
  (name) => `rest:{${name}}`,
];
const facesOf = (client: LockClient, name: string) => ({
  semaphore: client.getSemaphore(name),
  permits: client.getPermitExpirableSemaphore(name),
  latch: client.getCountDownLatch(name),
});
type Act = (faces: ReturnType<typeof facesOf>) => Promise<unknown>;
/** How one waits, and how another client gives. */
const waits: readonly (readonly [wait: Act, give: Act])[] = [
  [({ semaphore }) => semaphore.acquire(), ({ semaphore }) => semaphore.release()],
  [({ permits }) => permits.acquire({ lease: NEVER }), ({ permits }) => permits.addPermits(1)],
  [({ latch }) => latch.await(), ({ latch }) => latch.countDown()],
];

test.each(["auto", false] as const)(
  "on a cluster waiters hear of what another client gives, with shardedPubSub %s and any braces [§2 woken-by-message] [§7 wire]",
  async (shardedPubSub) => {
    const [mine, theirs] = await onCluster({ shardedPubSub });
    for (const shape of shapes) {
      for (const [wait, give] of waits) {
        const name = shape(freshName());
        const [here, there] = [facesOf(mine, name), facesOf(theirs, name)];
        if (wait === waits[2]?.[0]) await there.latch.trySetCount(1);
        const { done } = await untilWaiting(mine, () => wait(here));
        await give(there);
        await done;
      }
    }
    for (const spread of ["a{b", "{}x", "a}b"]) expect(() => facesOf(mine, spread)).toThrow(RangeError);
  },
);

test("permits in many slots of a cluster are renewed at their masters [§5 permits]", async () => {
  const [mine] = await onCluster({ watchdogTimeout: 6_000 });
  const all = Array.from({ length: 12 }, () => mine.getPermitExpirableSemaphore(freshName()));
  const renewed = new Set<string>();
  const lost: unknown[] = [];
  mine.on("renewed", ({ lockName }) => renewed.add(lockName)).on("lost", (event) => lost.push(event));
  for (const permits of all) await permits.trySetPermits(1);
  const ids = await Promise.all(all.map((permits) => permits.acquire()));
  await until("each is renewed", () => renewed.size === all.length);
  await nextEvent(mine, "renewed");
  for (const [i, permits] of all.entries()) await permits.release(ids[i] ?? "");
  expect(lost).toEqual([]);
});

/** Until when each release that this proxy has seen may be run, in milliseconds of the server's clock. */
const limits = ({ commands }: FaultProxy): number[] =>
  commands
    .map(({ command }) => command)
    .filter(script("release"))
    .map((command) => Number(command.at(-2)));
/** No time of a clock that has to do with this. */
const longAgo = (): number => Date.now() - 3_600_000;

test("no call is run by the clock of another machine, to which a lost connection may lead [§5 counts-once]", async () => {
  await using proxy = await startProxy(server);
  const redis = proxy.connect();
  const own = ownConnections(redis);
  const semaphore = forTest(new LockClient(redis)).getSemaphore(freshName());
  await semaphore.release(1);
  const lost = new Promise<void>((resolve) => own[0]?.on("close", () => resolve()));
  proxy.clear();
  proxy.cut();
  await lost;
  await semaphore.release(1);
  expect(limits(proxy)[0]).toBeLessThan(longAgo());
  expect(await semaphore.availablePermits()).toBe(2);
});

test("no call is run by the clock of another master of the cluster [§5 counts-once] [B4]", async () => {
  await using proxies = await startClusterProxy(cluster);
  const client = forTest(new LockClient(proxies.connect()));
  const byMaster = new Map<FaultProxy, string>();
  for (let i = 0; i < 30; i++) {
    const name = freshName();
    byMaster.set(await proxies.proxyFor(name), name);
  }
  expect(byMaster.size).toBe(3);
  await client.ready();
  for (const proxy of byMaster.keys()) proxy.clear();
  for (const [proxy, name] of byMaster) {
    for (let i = 0; i < 2; i++) await client.getSemaphore(name).release(1);
    expect(limits(proxy)).toHaveLength(3);
    expect(limits(proxy)[0]).toBeLessThan(longAgo());
    expect(await client.getSemaphore(name).availablePermits()).toBe(2);
  }
});
