/** A thousand locks by eight processes over three masters; where their keys are; and how many connections listen. */
import { afterEach, expect, test } from "vitest";
import type { LockClientOptions } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { KINDS, type Kind } from "../contract/kinds.js";
import { isMarker } from "../contract/wire.js";
import { bundledWorker } from "../faults/build-worker.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  forFile,
  isSharded,
  needSharded,
  startCluster,
  startWorker,
  until,
  type Worker,
} from "../support/index.js";
import { Crew, SHARDED, untilListening, waitFor } from "./cluster-crew.js";
import type { Figures, Named } from "./sizes-worker.js";

const LOCKS = 1_000;
const PROCESSES = 8;
/** The number of locks of each process that another process waits for. */
const CONTENDED = 25;
/** Short, but long enough for a busy machine. */
const WATCHDOG = 6_000;
/** The number of renewals that every hold must live through. */
const RENEWALS = 2;

const workers: Worker[] = [];
const bundle = bundledWorker("../topology/sizes-worker.js");

failOnUnhandledRejections();
const cluster = await forFile(startCluster({ masters: 3 }));
const looker = cluster.connect();
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
});

/** Names as people choose them; a cluster computes the slot from the part in braces alone. */
const STYLES: readonly ((id: string) => string)[] = [
  (id) => `plain-${id}`,
  (id) => `an order ${id}`,
  (id) => `{user:${id}}:profile`,
  (id) => `a{${id}}b{c}:d`,
  (id) => `größe:${id}`,
  (id) => `在庫 {棚 ${id}} 🔒`,
];

const slotOf = async (key: string): Promise<number> => Number(await looker.cluster("KEYSLOT", key));

/** The keys on all masters, without those by which clients tried out their server. */
async function keysOnServers(): Promise<string[]> {
  const lists = await Promise.all(cluster.nodes.map((node) => node.call("KEYS", "*")));
  const keys = lists.flatMap((list) => (Array.isArray(list) ? list.map(String) : []));
  return keys.filter((key) => !key.includes("holdfast-ready"));
}

test("a thousand locks held at once by eight processes: renewed, handed over, none lost", async () => {
  const named = Array.from({ length: LOCKS }, (_, i): Named => {
    const style = STYLES[i % STYLES.length] as (id: string) => string;
    return { name: style(String(i)), kind: i % KINDS.length };
  });
  const shareOf = (p: number) => named.filter((_, i) => i % PROCESSES === p % PROCESSES);
  workers.push(...(await Promise.all(Array.from({ length: PROCESSES }, () => startWorker(bundle())))));
  const all = <T>(what: string, payload?: (p: number) => unknown): Promise<T[]> => {
    return Promise.all(workers.map((worker, p) => worker.request<T>(what, payload?.(p))));
  };
  const ports = cluster.nodes.map(({ port }) => port);
  await all("start", () => ({ ports, watchdogTimeout: WATCHDOG }));
  const begun = performance.now();
  await all("take", shareOf);
  const took = performance.now() - begun;
  await all("want", (p) => shareOf(p + 1).slice(0, CONTENDED));

  const count = (figures: Figures[], of: "held" | "granted" | "waiting") => {
    return figures.reduce((sum, each) => sum + each[of], 0);
  };
  const figures = await until(
    "all are renewed",
    async () => {
      const seen = await all<Figures>("figures");
      return seen.every(({ leastRenewed }) => leastRenewed >= RENEWALS) && seen;
    },
    { timeout: 20_000, every: 100 },
  );
  if (!figures) throw new Error("no figures");
  expect(figures.flatMap(({ troubles }) => troubles)).toEqual([]);
  expect([count(figures, "held"), count(figures, "granted")]).toEqual([LOCKS, 0]);
  expect(count(figures, "waiting")).toBe(PROCESSES * CONTENDED);
  const keys = await keysOnServers();
  expect(named.filter(({ name }) => !keys.includes(name))).toEqual([]);
  const perMaster = await Promise.all(cluster.nodes.map((node) => node.call("DBSIZE")));
  expect(Math.min(...perMaster.map(Number))).toBeGreaterThan(LOCKS / 6);

  const handing = performance.now();
  await all("giveBack");
  const granted = async () => count(await all<Figures>("figures"), "granted") === PROCESSES * CONTENDED;
  await until("all are handed over", granted, { timeout: 10_000, every: 20 });
  const handed = performance.now() - handing;
  const last = await all<Figures>("figures");
  expect(last.flatMap(({ troubles }) => troubles)).toEqual([]);
  await all("close");
  const left = await keysOnServers();
  expect(left.filter((key) => !isMarker(key) && !key.startsWith("redisson_lock_token:"))).toEqual([]);
  console.log(
    `${LOCKS} locks, ${PROCESSES} processes: taken in ${Math.round(took)} ms, each renewed at least ${Math.min(...figures.map(({ leastRenewed }) => leastRenewed))} times, ` +
      `given back and ${PROCESSES * CONTENDED} handed over in ${Math.round(handed)} ms, none lost`,
  );
});

test.each(STYLES.map((style) => [style("n"), style] as const))(
  'all keys of the locks called like "%s" are in the slot of their lock',
  async (_, style) => {
    await using crew = new Crew(cluster);
    const [ours, theirs] = await Promise.all([crew.join(), crew.join()]);
    const sorts = new Set<string>();
    const visit = async (kind: Kind, name: string): Promise<void> => {
      const lock = kind.make(ours.client, name);
      const rival = kind.rival.make(theirs.client, name);
      // Taken by force, held three times, given back once, awaited and given up.
      await lock.lock();
      await lock.forceUnlock();
      const hold = await lock.lock();
      const nested = await lock.lock({ owner: hold });
      await (await lock.lock({ owner: hold, lease: 60_000 })).unlock();
      const waiting = waitFor(rival);
      const controller = new AbortController();
      const givenUp = failure(rival.lock({ signal: controller.signal }));
      await until("both wait", () => theirs.told("waiting", name).length === 2);
      controller.abort(new Error("enough"));
      expect((await givenUp).message).toBe("enough");
      const keys = (await keysOnServers()).filter((key) => key.includes(name));
      expect(keys).toContain(name);
      const slot = await slotOf(name);
      expect(await Promise.all(keys.map(slotOf))).toEqual(keys.map(() => slot));
      for (const key of keys) sorts.add(key === name ? "hash" : sortOf(key));
      await nested.unlock();
      await hold.unlock();
      await (await waiting.hold).unlock();
    };
    await Promise.all(KINDS.map((kind, i) => visit(kind, style(`slot${i}.`))));
    expect([...sorts].sort()).toEqual([
      "hash",
      "holdfast_alive",
      "holdfast_over",
      "holdfast_writers",
      "redisson_lock_queue",
      "redisson_lock_timeout",
      "redisson_lock_token",
      "redisson_unlock_latch",
      "rwlock_timeout",
    ]);
  },
);

function sortOf(key: string): string {
  return /:rwlock_timeout:\d+$/.test(key) ? "rwlock_timeout" : (key.split(":")[0] ?? "");
}

test.for(SHARDED)("connections that listen, with shardedPubSub %s", async (shardedPubSub, context) => {
  await needSharded(shardedPubSub, context);
  await using crew = new Crew(cluster);
  const options: LockClientOptions = { shardedPubSub };
  const members = await Promise.all([1, 2, 3].map(() => crew.join(options)));
  const holder = await crew.join(options);
  const before = await listeners();
  const names = Array.from({ length: 60 }, (_, i) => `listened ${String(shardedPubSub)} ${i}.`);
  const holds = await Promise.all(names.map((name) => holder.client.getLock(name).lock()));
  const waiting = members.flatMap(({ client }) => names.map((name) => waitFor(client.getLock(name))));
  await untilListening(cluster, names, shardedPubSub);
  await until("all have asked again", () => members.every(({ events }) => waits(events) === names.length));
  const now = await listeners();
  expect(before).toEqual(cluster.nodes.map(() => 0));
  const total = now.reduce((sum, each) => sum + each, 0);
  if (await isSharded(shardedPubSub)) expect(now).toEqual(cluster.nodes.map(() => members.length));
  else expect(total).toBe(members.length);
  await Promise.all(holds.map((hold) => hold.unlock()));
  await Promise.all(waiting.map(async ({ hold }) => (await hold).unlock()));
});

const waits = (events: readonly { readonly name: string }[]): number => {
  return events.filter(({ name }) => name === "waiting").length;
};

/** The number of subscribed connections on each node. */
async function listeners(): Promise<number[]> {
  const lists = await Promise.all(cluster.nodes.map((node) => node.call("CLIENT", "LIST", "TYPE", "pubsub")));
  return lists.map(
    (list) =>
      String(list)
        .split("\n")
        .filter((line) => line !== "").length,
  );
}
