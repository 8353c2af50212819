/**
 * These tests run contract section 5 on real servers and connections. Calls of each sort meet the faults of
 * once.test.ts. Other tests have waiters on a cluster, kill servers, and show whose clock decides.
 */
import { describe, expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../../src/index.js";
import { nextEvent, untilWaiting } from "../../contract/helpers.js";
import { freshName, manyAtOnce, Stage, script, soon, useStage, watch } from "../../faults/harness.js";
import {
  type Fault,
  type FaultProxy,
  forTest,
  type Matcher,
  PATIENCE,
  startClusterProxy,
  until,
} from "../../support/index.js";
import { Site } from "./helpers.js";
import { countsOf, EACH_SORT, OPERATIONS, type Operation, prepare } from "./operations.js";
import { NEVER } from "./place.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");

const sorts = EACH_SORT.map((name) => [name, OPERATIONS[name] as Operation] as const);
const ways = {
  "with default options": {},
  "on a cluster": { topology: "cluster" },
} as const;
const faults: Readonly<Record<string, (proxy: FaultProxy, match: Matcher) => Fault>> = {
  "whose reply is lost": (proxy, match) => proxy.cutReplyOf(match),
  "whose request is lost": (proxy, match) => proxy.dropRequest(match),
};

describe.concurrent.each(Object.entries(ways))("%s", (_, way) => {
  for (const [fault, strike] of Object.entries(faults)) {
    test.each(sorts)(`%s ${fault} counts once [§5 counts-once]`, async (_name, operation) => {
      const { call, does } = operation;
      await using site = await Site.of(stage, way);
      const id = await prepare(site, operation);
      const struck = strike(site.bed(0).proxy, site.own);
      expect(await call(site, id)).toEqual(does.gives);
      await struck.done;
      expect([await site.counts(), site.bed(0).troubles]).toEqual([countsOf(does.to), []]);
    });
  }

  test.each(sorts)("%s that arrives once more counts once [§5 counts-once]", async (_name, operation) => {
    const { call, does, next } = operation;
    await using site = await Site.of(stage, way);
    const id = await prepare(site, operation);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    const outcome = await call(site, id);
    expect([outcome, ghost.hits]).toEqual([does.gives, 1]);
    await next.call(site, outcome, id);
    await ghost.deliver();
    expect(await site.counts()).toEqual(countsOf(next.to));
  });
});

/** Clients of the cluster, past all proxies. */
async function onCluster(options: LockClientOptions = {}): Promise<[LockClient, LockClient]> {
  const make = () => forTest(new LockClient(stage.cluster.connect(), { pollCap: NEVER, ...options }));
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
        await soon(watch(done));
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
  await using site = await Site.of(stage);
  await site.semaphore().release(1);
  const { proxy, own } = site.bed(0);
  const lost = new Promise<void>((resolve) => own.on("close", () => resolve()));
  proxy.clear();
  proxy.cut();
  await lost;
  await site.semaphore().release(1);
  expect(limits(proxy)[0]).toBeLessThan(longAgo());
  expect(await site.counts()).toEqual(["2", 0]);
});

test("no call is run by the clock of another master of the cluster [§5 counts-once] [B4]", async () => {
  await using proxies = await startClusterProxy(stage.cluster);
  const client = forTest(new LockClient(proxies.connect()));
  const byMaster = new Map<FaultProxy, string>();
  for (let i = 0; i < 30; i++) {
    const name = freshName();
    byMaster.set(await proxies.proxyFor(name), name);
  }
  expect(byMaster.size).toBe(3);
  // After this a server before Redis 7 has refused the modern text of a script, and is not sent it again.
  await client.ready();
  for (const proxy of byMaster.keys()) proxy.clear();
  for (const [proxy, name] of byMaster) {
    for (let i = 0; i < 2; i++) await client.getSemaphore(name).release(1);
    expect(limits(proxy)).toHaveLength(3);
    expect(limits(proxy)[0]).toBeLessThan(longAgo());
    expect(await client.getSemaphore(name).availablePermits()).toBe(2);
  }
});

test("a server that is killed and comes back: each call under way counts once, and waiters go on [§5 counts-once] [§2 waiting-survives-outage]", async () => {
  await using own = await Stage.start(["standalone"], ["--appendonly", "yes", "--appendfsync", "always"]);
  await using site = await Site.of(own, { commandTimeout: PATIENCE, pollCap: NEVER }, {});
  const { client } = site.bed(0);
  const names = Array.from({ length: 12 }, (_, i) => `${site.name}-${i}`);
  for (const name of names) await site.call("SET", name, 50);
  await site.latch().trySetCount(1);
  const waiting = await site.parked(0, () => site.latch().await());
  const calls = names.flatMap((name) => [
    watch(client.getSemaphore(name).acquire(2)),
    watch(client.getSemaphore(name).release(5)),
    watch(client.getSemaphore(name).run(() => {}, { permits: 7 })),
  ]);
  await own.server.kill();
  await own.server.restart();
  await until("all are over", () => calls.every(({ state }) => state !== "pending"));
  expect(calls.map(({ error }) => error)).toEqual(calls.map(() => undefined));
  expect(await site.redis.mget(names)).toEqual(names.map(() => "53"));
  await site.latch(1).countDown();
  expect(await soon(waiting)).toBe(true);
});
