/** Contract section 2: how the watchdog keeps holds that were taken without a lease. */
import { expect } from "vitest";
import { failure, READ, row, SINGLE, type VirtualPlace, watch } from "../support/place/index.js";

const WATCHDOG = 9_000;
const ROUND = WATCHDOG / 3;
const RETRY = ROUND / 10;
/** A round and the part of it by which renewals may be late, so that they share a command. */
const SOON = ROUND + WATCHDOG / 12;
/** The part of the watchdog's lease that the default drift leaves. */
const DEADLINE = WATCHDOG * 0.99 - 2;
const client = { watchdogTimeout: WATCHDOG, commandTimeout: 1_000 };
/** For late answers. */
const patient = { ...client, commandTimeout: 30_000 };

const count = ({ servers }: VirtualPlace) => servers.flatMap((server) => server.took()).length;
const renewals = ({ a, kind }: VirtualPlace) =>
  a.heard("renewed").filter((event) => event.kind === kind.kind).length;

row(
  "a kept lock is renewed every third of watchdogTimeout, by one command for all holds of the owner [§2 lease]",
  { kinds: SINGLE, client },
  async (place) => {
    const { lock, pass, a, view } = place;
    a.listen("renewed");
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer });
    count(place);
    await pass(SOON);
    expect(count(place)).toBe(1);
    expect(renewals(place)).toBe(1);
    for (const hold of [outer, inner]) expect(hold.remaining).toBeGreaterThan(DEADLINE - WATCHDOG / 12 - 1);
    await pass(10 * ROUND);
    const sent = count(place);
    expect(sent).toBeGreaterThanOrEqual(8);
    expect(sent).toBeLessThanOrEqual(13);
    expect(await view.count()).toBe(2);
    await outer.unlock();
    await pass(2 * ROUND);
    expect(inner.isHeld).toBe(true);
    await inner.unlock();
    count(place);
    await pass(5 * ROUND);
    expect(count(place)).toBe(0);
  },
);

row(
  "an owner is renewed as long as one of its holds was taken without a lease, and no longer [§2 watchdog-any]",
  { client },
  async (place) => {
    const { lock, pass } = place;
    const leased = await lock.lock({ lease: 200_000 });
    const kept = await lock.lock({ owner: leased });
    count(place);
    await pass(SOON);
    expect(count(place)).toBeGreaterThan(0);
    await kept.unlock();
    count(place);
    await pass(10 * ROUND);
    expect(count(place)).toBe(0);
    expect(leased.isHeld).toBe(true);
    await leased.unlock();
  },
);

row(
  "a renewal without an answer is announced once, tried again after a tenth of a round, and saves the hold [§2 lease] [F19]",
  { kinds: SINGLE, client },
  async ({ lock, pass, a, kind, server }) => {
    a.listen("suspended", "renewed");
    const hold = await lock.lock();
    await pass(ROUND - 1);
    for (let outages = 1; outages <= 2; outages++) {
      a.keep("requests");
      while (a.onTheirWay === 0) await pass(100);
      await pass(1_000);
      expect(a.heard("suspended")).toHaveLength(outages);
      expect(a.heard("suspended").at(-1)).toMatchObject({
        lockName: lock.name,
        kind: kind.kind,
        ownerId: hold.ownerId,
        cause: { code: "UNAVAILABLE" },
      });
      await pass(RETRY + 100);
      expect(a.heard("suspended")).toHaveLength(outages);
      server.took();
      await a.letGo();
      // The first one, late; the same by the new connection; and the next one.
      expect(server.took()).toHaveLength(3);
      await pass(5 * ROUND);
      expect(hold.isHeld).toBe(true);
    }
    expect(a.heard("renewed").length).toBeGreaterThan(0);
    await hold.unlock();
  },
);

row(
  "renewals that are each answered too late keep the hold all the same [§2 lease] [B243]",
  { kinds: SINGLE, client },
  async ({ lock, pass, a }) => {
    const hold = await lock.lock();
    for (let past = 0; past < 4 * WATCHDOG; past += 1_100) {
      a.keep("replies");
      for (; hold.isHeld && a.onTheirWay === 0; past += 100) await pass(100);
      await pass(1_100);
      await a.letGo();
    }
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  },
);

row(
  "a renewal counts from when it was sent, however late its answer is [§2 remaining-from-send] [F5]",
  { kinds: SINGLE, client: patient },
  async ({ lock, pass, a }) => {
    a.listen("renewed");
    const hold = await lock.lock();
    await pass(ROUND - 1);
    a.keep("replies");
    await pass(1 + WATCHDOG / 12);
    await pass(2_000);
    await a.letGo();
    expect(a.heard("renewed")).toHaveLength(1);
    expect(hold.remaining).toBeGreaterThan(DEADLINE - 2_000 - WATCHDOG / 12 - 1);
    expect(hold.remaining).toBeLessThanOrEqual(DEADLINE - 2_000);
    await hold.unlock();
  },
);

row(
  "a late answer to a renewal that found no lock ends nothing that is held again [§2 lease]",
  // What a read hold has besides the lock is gone for good.
  { kinds: SINGLE.filter((kind) => kind !== READ), client },
  async ({ lock, server, view, pass, a }) => {
    const hold = await lock.lock();
    await pass(ROUND - 1);
    a.keep("replies");
    const fields = await view.hash();
    server.delete();
    await pass(1 + 1_000);
    expect(a.onTheirWay).toBeGreaterThan(0);
    server.give(fields);
    await a.letGo();
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  },
);

for (const [title, wait] of [
  ["when its timer has fired", (place: VirtualPlace) => place.pass(DEADLINE)],
  ["though no timer has fired", async ({ server }: VirtualPlace) => server.clock.moveTo(DEADLINE)],
] as const) {
  row(
    `a hold that was lost is not brought back by the late answer to its renewal, ${title} [§2 lost-is-final]`,
    { kinds: SINGLE, client: patient },
    async (place) => {
      const { lock, pass, a, view } = place;
      a.listen("renewed");
      const hold = await lock.lock();
      await pass(ROUND - 1);
      a.keep("replies");
      await pass(1 + WATCHDOG / 12);
      expect(a.onTheirWay).toBeGreaterThan(0);
      await wait(place);
      await a.letGo();
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
      expect(hold.isHeld).toBe(false);
      expect(a.heard("renewed")).toEqual([]);
      await place.settle();
      expect(await view.hash()).toEqual({});
    },
  );
}

row(
  "an unlock during a renewal is the end: the answer means nothing, and the next hold has a round of its own [§2 wire-id-once] [F20]",
  { kinds: SINGLE, client: patient },
  async ({ lock, pass, a, view }) => {
    a.listen("renewed", "lost");
    const hold = await lock.lock();
    await pass(ROUND - 1);
    a.keep("replies");
    await pass(1 + WATCHDOG / 12);
    const back = watch(hold.unlock());
    await a.letGo();
    expect(back.outcome).toBeUndefined();
    expect(a.told).toEqual([]);
    const next = await lock.lock();
    await pass(SOON);
    expect(a.heard("renewed")).toHaveLength(1);
    expect(await view.count()).toBe(1);
    await next.unlock();
  },
);

row(
  "a stalled process does not renew what is lost already [§2 lost-is-final] [F16]",
  { client },
  async ({ lock, server, a, settle }) => {
    a.listen("renewed");
    const hold = await lock.lock();
    server.clock.moveTo(WATCHDOG + 1_000);
    server.clock.fire();
    await settle();
    expect(hold.signal.aborted).toBe(true);
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
    expect(a.heard("renewed")).toEqual([]);
  },
);
