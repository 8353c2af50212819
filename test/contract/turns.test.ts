/** Contract section 3: parallel runs of one owner take turns: which share a turn, and which is next. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { type Lock, MultiLock } from "../../src/index.js";
import { deferred, EXCLUSIVE, row, type VirtualPlace, watch } from "../support/place/index.js";
import { inScope, Runs } from "./named-runs.js";

/** The places where parallel runs of one lock have one owner. */
const WITHIN: Readonly<
  Record<string, (place: VirtualPlace, work: () => Promise<unknown>) => Promise<unknown>>
> = {
  "a run of that lock": ({ lock }, work) => lock.run(work),
  "a run of another lock": ({ other }, work) => other.run(work),
  "a scope": ({ client }, work) => client.scope(work),
  "a scope that holds the lock": ({ client, lock }, work) =>
    client.scope(async () => {
      await lock.lock();
      await work();
      expect(await lock.getHoldCount()).toBe(1);
      await lock.unlock();
    }),
  "runs of an Owner's hold": async ({ client, lock }, work) => {
    const hold = await lock.lock({ owner: client.newOwner() });
    await lock.run(work, { owner: hold });
    await hold.unlock();
  },
};

for (const [where, within] of Object.entries(WITHIN))
  row(
    `three parallel runs in ${where} go one after the other, in the order of their calls [§3 parallel-runs]`,
    { kinds: EXCLUSIVE },
    async (place) => {
      const runs = new Runs(place);
      const all = within(place, async () => {
        const calls = ["a", "b", "c"].map((name) => runs.begin(name, place.lock));
        await Promise.all(calls.map(({ promise }) => promise));
      });
      await place.settle();
      await runs.endInTurn("a", "b", "c");
      await all;
    },
  );

row.real(
  "parallel runs of a tree never overlap, also when runs of other locks lie between [§3 parallel-runs]",
  { kinds: EXCLUSIVE },
  async ({ lock, other }) => {
    const order: string[] = [];
    const section = async (name: string) => {
      order.push(`+${name}`);
      await sleep(1);
      order.push(`-${name}`);
    };
    const through = (name: string) => other.run(() => lock.run(() => section(name)));
    await lock.run(() => Promise.all(["1", "2", "3"].map((name) => lock.run(() => section(name)))));
    expect(order.splice(0)).toEqual(["+1", "-1", "+2", "-2", "+3", "-3"]);
    await lock.run(() => Promise.all(["1", "2", "3"].map(through)));
    expect(order.splice(0)).toEqual(["+1", "-1", "+2", "-2", "+3", "-3"]);
  },
);

inScope(
  "one end and one take pass the turn on, and of many runs that wait none asks meanwhile [§3 parallel-runs]",
  async ({ lock, runs, server, kind }) => {
    const names = Array.from({ length: 20 }, (_, i) => `run ${i}`);
    for (const name of names) runs.begin(name, lock);
    await runs.now();
    const perServer = kind.members / kind.servers;
    for (const name of names.slice(0, -1)) {
      server.took();
      await runs.endInTurn(name);
      expect(server.took()).toHaveLength(2 * perServer);
    }
    await runs.endInTurn(names.at(-1) as string);
  },
);

inScope(
  "a run never waits for a bare hold of its own owner, nor behind one that is given back [§3 parallel-runs]",
  async ({ lock, runs }) => {
    const bare = await lock.lock();
    runs.begin("a", lock);
    runs.begin("b", lock);
    expect(await runs.now()).toEqual(["a"]);
    await bare.unlock();
    await runs.endInTurn("a", "b");
  },
);

inScope(
  "a run that is called while a sibling gives its hold back goes on with a new one [§3 parallel-runs]",
  async ({ lock, runs, settle, a }) => {
    runs.begin("a", lock);
    await settle();
    a.keep("replies");
    await runs.end("a");
    runs.begin("b", lock);
    await settle();
    await a.letGo();
    await runs.endInTurn("b");
  },
);

inScope(
  "a nested run does not wait behind its siblings, and holds them up as long as it runs [§3 parallel-runs]",
  async ({ lock, runs }) => {
    runs.begin("a", lock, {}, () => runs.begin("a1", lock));
    runs.begin("b", lock, {}, () => {
      for (const name of ["b1", "b2"]) runs.begin(name, lock);
    });
    runs.begin("c", lock);
    expect(await runs.now()).toEqual(["a", "a1"]);
    // The outer run ends while the inner one still runs.
    expect(await runs.end("a")).toEqual(["a1"]);
    expect(await runs.end("a1")).toEqual(["b", "b1"]);
    expect(await runs.end("b1")).toEqual(["b", "b2"]);
    expect(await runs.end("b2")).toEqual(["b"]);
    expect(await runs.end("b")).toEqual(["c"]);
    await runs.end("c");
  },
);

inScope(
  "a run that is nested later goes before siblings that wait already [§3 parallel-runs]",
  async ({ lock, runs, settle }) => {
    const order: string[] = [];
    const nest = deferred();
    const outer = watch(
      lock.run(async () => {
        await nest.promise;
        await lock.run(() => order.push("nested"));
      }),
    );
    await settle();
    const sibling = watch(lock.run(() => order.push("sibling")));
    await runs.now();
    nest.resolve();
    await runs.now();
    expect(order).toEqual(["nested", "sibling"]);
    expect([outer.state, sibling.state]).toEqual(["resolved", "resolved"]);
  },
);

inScope(
  "a run whose wait is over, or that is aborted, gives up its turn to the next [§3 parallel-runs]",
  async ({ lock, runs, settle, pass }) => {
    const controller = new AbortController();
    runs.begin("a", lock);
    const late = runs.begin("b", lock, { wait: 1_000 });
    const aborted = runs.begin("c", lock, { signal: controller.signal });
    const none = runs.begin("e", lock, { wait: 0 });
    runs.begin("d", lock);
    await settle();
    expect(none.outcome).toBe("WAIT_TIMEOUT");
    await pass(999);
    expect(late.outcome).toBe("pending");
    await pass(1);
    expect(late.error).toMatchObject({ code: "WAIT_TIMEOUT", lockName: lock.name });
    controller.abort("enough");
    await settle();
    expect(aborted.outcome).toBe("enough");
    expect(await lock.getHoldCount()).toBe(1);
    await runs.endInTurn("a", "d");
  },
);

inScope(
  "a function that fails, or that unlocks early, ends its turn only when it ends [§3 parallel-runs]",
  async ({ lock, runs, settle }) => {
    const end = deferred();
    const fails = watch(
      lock.run(async (hold) => {
        await hold.unlock();
        await end.promise;
        throw new Error("mine");
      }),
    );
    runs.begin("b", lock);
    expect(await runs.now()).toEqual([]);
    end.resolve();
    await settle();
    expect(fails.error).toMatchObject({ message: "mine" });
    await runs.endInTurn("b");
  },
);

inScope(
  "a run whose hold is lost keeps its turn until its function ends [§3 parallel-runs]",
  async ({ lock, runs, pass }) => {
    const lost = runs.begin("a", lock, { lease: 1_000 });
    const next = runs.begin("b", lock);
    await pass(1_000);
    expect(await runs.now()).toEqual(["a"]);
    expect(next.outcome).toBe("pending");
    await runs.end("a");
    expect(lost.outcome).toBe("LOCK_LOST");
    await runs.endInTurn("b");
  },
);

inScope(
  "runs of a group take turns with each other, and with runs of a member [§3 parallel-runs]",
  async ({ lock, runs, client }) => {
    const group = new MultiLock(lock, client.getLock("other")) as unknown as Lock;
    runs.begin("a", group);
    runs.begin("b", group);
    runs.begin("c", lock);
    runs.begin("d", group);
    expect(await runs.now()).toEqual(["a"]);
    const left = new Set(["b", "c", "d"]);
    await runs.end("a");
    while (left.size > 0) {
      const [next, ...more] = await runs.now();
      expect(more).toEqual([]);
      expect(left.delete(next as string)).toBe(true);
      await runs.end(next as string);
    }
  },
  EXCLUSIVE.filter(({ members }) => members === 1),
);
