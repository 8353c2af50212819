/** Where the keys of a lock are on a cluster: in one slot, whatever its name. */
import { expect, test } from "vitest";
import { failure } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, startCluster, until } from "../support/index.js";
import { type Kind, SINGLE } from "../support/place/kinds.js";
import { Crew, waitFor } from "./cluster-crew.js";

failOnUnhandledRejections();
const cluster = await forFile(startCluster({ masters: 3 }));
const looker = cluster.connect();

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

test.each(STYLES.map((style) => [style("n"), style] as const))(
  'all keys of the locks called like "%s" are in the slot of their lock',
  async (_, style) => {
    await using crew = new Crew(cluster);
    const [ours, theirs] = await Promise.all([crew.join(), crew.join()]);
    const sorts = new Set<string>();
    const visit = async (kind: Kind, name: string): Promise<void> => {
      const lock = kind.make([ours.client], name);
      const rival = kind.rival.make([theirs.client], name);
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
    await Promise.all(SINGLE.map((kind, i) => visit(kind, style(`slot${i}.`))));
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
