/** Contract sections 1 and 6: grants that replicas must acknowledge, and those short of that. */
import { expect } from "vitest";
import type { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import type { Hold } from "../../src/index.js";
import { failure, type Kind, PLAIN, row, SINGLE, type VirtualPlace, watch } from "../support/place/index.js";

const client = { replicas: 2, replicasTimeout: 500, commandTimeout: 1_000 };
const REPLICAS = { code: "REPLICAS", acknowledged: 1, required: 2 };

interface Replicas extends VirtualPlace {
  /** The connection by which grants go, since their WAIT blocks what comes behind. */
  readonly grants: MemoryConnection;
  /** Sets how many replicas acknowledge. */
  acknowledge(count: number): void;
  /** The arguments of each WAIT so far. */
  waits(): (readonly string[])[];
}

/** A row on a server whose two replicas acknowledge, unless it says otherwise. */
function replicated(
  title: string,
  body: (place: Replicas) => Promise<unknown>,
  kinds: readonly Kind[] = SINGLE,
): void {
  row(title, { kinds, client }, async (place) => {
    let acknowledged = 2;
    place.server.instead = ({ name }) => (name === "WAIT" ? acknowledged : undefined);
    const [, commands, grants] = place.a.connections;
    await body({
      ...place,
      grants: (grants ?? commands) as MemoryConnection,
      acknowledge: (count) => {
        acknowledged = count;
      },
      waits: () => place.server.ran.filter(({ name }) => name === "WAIT").map(({ args }) => args),
    });
    place.server.instead = () => undefined;
  });
}

replicated(
  "a grant counts when enough replicas have acknowledged it, and a release waits for none [§6 codes]",
  async ({ lock, waits }) => {
    const hold = await lock.lock();
    expect(waits()).toEqual([["2", "500"]]);
    await hold.unlock();
    expect(waits()).toHaveLength(1);
  },
);

replicated(
  "an outermost grant short of replicas is undone before its call rejects REPLICAS [§6 codes]",
  async ({ lock, acknowledge, view, a, settle }) => {
    a.listen("acquired");
    acknowledge(1);
    expect(await failure(lock.tryLock())).toMatchObject(REPLICAS);
    expect(await view.hash()).toEqual({});
    // What undoes the grant has to be answered first.
    a.keep("replies");
    const call = watch(lock.lock());
    await settle();
    expect(call.state).toBe("pending");
    await a.letGo();
    await settle();
    expect(call.outcome).toBe("REPLICAS");
    acknowledge(2);
    const hold = await lock.lock();
    expect(a.told).toHaveLength(1);
    await hold.unlock();
  },
);

replicated("grants of one moment share a WAIT [§6 codes]", async ({ a, kind, settle, waits, server }) => {
  const locks = Array.from({ length: 3 }, (_, i) => kind.make(a.clients, `lock-${i}`));
  const calls = locks.map((lock) => watch(lock.lock()));
  await settle();
  expect(calls.map(({ state }) => state)).toEqual(["resolved", "resolved", "resolved"]);
  expect(waits()).toHaveLength(1);
  for (const { value } of calls) await (value as Hold).unlock();
  server.execute(["SET", "lock-1", "foreign"]);
  const mixed = locks.map((lock) => watch(lock.lock()));
  await settle();
  expect(mixed.map(({ state }) => state)).toEqual(["resolved", "rejected", "resolved"]);
  expect(mixed[1]?.outcome).toBe("WRONG_DATA");
  server.delete("lock-1");
  for (const { value } of mixed) await value?.unlock();
});

replicated(
  "a grant survives a short outage, and one without an answer is UNAVAILABLE and given back [§2 unavailable]",
  async ({ lock, a, pass }) => {
    await (await lock.lock()).unlock();
    await a.cut();
    const short = watch(lock.lock());
    await pass(500);
    expect(short.state).toBe("pending");
    await a.mend();
    await pass(500);
    await short.value?.unlock();
    await a.cut();
    const call = watch(lock.lock());
    await pass(999);
    expect(call.state).toBe("pending");
    // The time of its command, of its own WAIT, and of one before it.
    await pass(1_001);
    expect(call.outcome).toBe("UNAVAILABLE");
    await a.mend();
    await pass(2_000);
    await (await lock.lock()).unlock();
  },
);

for (const [title, lose] of [
  ["its connection breaks", ({ grants }) => [grants.emit("close")]],
  ["all connections break", ({ grants, a }) => [a.connection, grants].map((each) => each.emit("close"))],
  ["a node of its cluster fails", ({ grants }) => [grants.emit("node error")]],
  ["a node of its cluster goes", ({ grants }) => [grants.emit("-node")]],
] as readonly [string, (place: Replicas) => unknown][]) {
  replicated(
    `a grant that may arrive once more takes nothing, as when ${title} [§2 counts-once]`,
    async (place) => {
      const { lock, a, grants, settle, view } = place;
      a.keep("requests", grants);
      const call = watch(lock.lock());
      await settle();
      lose(place);
      await a.sendTwice();
      await view.wipe();
      expect(await failure((call.value as Hold).unlock())).toMatchObject({ code: "LOCK_LOST" });
      await settle();
      await a.letGo();
      expect(await view.hash()).toEqual({});
    },
  );
}

replicated(
  "a grant that its connection kept for longer than any marker lives takes nothing [§2 nothing-left] [B127]",
  async ({ a, lock, pass, grants, view }) => {
    a.keep("requests", grants);
    const call = watch(lock.tryLock(0, 600_000));
    await pass(61_000);
    expect(call.outcome).toBe("UNAVAILABLE");
    await a.letGo();
    await pass(10_000);
    expect(await view.hash()).toEqual({});
  },
);

replicated(
  "a grant whose call has been given up is not taken, also behind the WAIT of another [§2 nothing-left] [B127] [B109]",
  async ({ a, lock, other, pass, grants, settle, rival }) => {
    const owner = a.client.newOwner();
    a.keep("replies", grants);
    const first = watch(other.lock());
    await settle();
    const controller = new AbortController();
    const call = watch(lock.lock({ owner, signal: controller.signal }));
    await settle();
    controller.abort("enough");
    await settle();
    await a.letGo();
    await pass(1_000);
    expect(call.outcome).toBe("enough");
    await (await rival.tryLock())?.unlock();
    const next = watch(lock.tryLock(0, 5_000, { owner }));
    await pass(1_000);
    expect(next.value?.isHeld).toBe(true);
    await next.value?.unlock();
    await first.value?.unlock();
  },
);

replicated(
  "a lock that stays in use is no outage, while the WAIT of another call blocks [§2 wait-timeout] [B126]",
  async ({ lock, other, rival, a, pass, grants }) => {
    const theirs = await rival.lock({ lease: 60_000 });
    const call = watch(lock.tryLock(1_000));
    await pass(100);
    a.keep("replies", grants);
    const blocked = watch(other.lock());
    await pass(900);
    expect(call.outcome).toBeNull();
    await a.letGo();
    await blocked.value?.unlock();
    await theirs.unlock();
  },
);

replicated(
  "a connection that is silent for longer than a WAIT may take is replaced, and grants go by the new one [§1 reconnect] [B128]",
  async ({ a, lock, other, pass, grants, settle }) => {
    a.keep("replies", grants);
    const calls = [watch(lock.lock())];
    await settle();
    calls.push(watch(other.lock()));
    await pass(1_499);
    a.keep("replies");
    await pass(1);
    expect(calls.map(({ state }) => state)).toEqual(["resolved", "resolved"]);
    await a.letGo();
    for (const { value } of calls) await (value as Hold).unlock();
  },
  [PLAIN],
);

replicated(
  "on a cluster only the connection to the silent node is made anew, and grants behind it go [§1 reconnect] [B245]",
  async ({ a, kind, pass, grants, settle }) => {
    const replaced: string[] = [];
    const node = (host: string) => ({
      options: { host, port: 0 },
      disconnect: () => void replaced.push(host),
    });
    const nodes = () => [node("well"), node("memory")];
    Object.assign(grants, { isCluster: true, slots: Array(16_384).fill(["memory:0"]), nodes });
    const lock = (i: number) => watch(kind.make(a.clients, `lock-${i}`).lock());
    a.keep("replies", grants);
    const calls = [lock(0)];
    await settle();
    for (const i of [1, 2]) calls.push(lock(i));
    await pass(1_500);
    expect(replaced).toEqual(["memory"]);
    await a.letGo();
    await pass(100);
    expect(calls.map(({ state }) => state)).toEqual(["resolved", "resolved", "resolved"]);
    for (const { value } of calls) await (value as Hold).unlock();
  },
  [PLAIN],
);

replicated(
  "a hold that runs out between two looks at the clock leaves a nested call what Redis keeps [§2 one-deadline] [B110]",
  async ({ a, lock, pass, settle, server, view }) => {
    const { clock } = server;
    const [mono, wall] = [clock.mono.bind(clock), clock.wall.bind(clock)];
    for (let reads = 1; reads < 12; reads++) {
      const outer = await lock.lock({ lease: 5_000 });
      const short = await lock.lock({ lease: 500, owner: outer });
      await pass(492);
      a.keep("requests");
      let left = reads;
      clock.mono = () => mono() + (--left < 0 ? 1 : 0);
      clock.wall = () => wall() + (left < 0 ? 1 : 0);
      const nested = watch(lock.lock({ owner: outer, lease: 60_000 }));
      Object.assign(clock, { mono, wall });
      await settle();
      await a.letGo();
      const held = [nested.value, short, outer].filter((hold) => hold?.isHeld) as Hold[];
      expect(await lock.getHoldCount({ owner: outer })).toBe(held.length);
      expect(await view.ttl()).toBeGreaterThan(nested.value?.remaining ?? 0);
      for (const hold of held) await hold.unlock();
    }
  },
);

replicated(
  "what the connection for grants kept for longer than markers live takes no permits for good [§5 counts-once] [B171]",
  async ({ a, pass, grants, server }) => {
    const plain = a.client.getSemaphore("plain");
    const leased = a.client.getPermitExpirableSemaphore("leased");
    await plain.trySetPermits(3);
    await leased.trySetPermits(3);
    a.keep("requests", grants);
    const started: Promise<unknown>[] = [
      plain.tryAcquire(2),
      plain.drainPermits(),
      leased.tryAcquire(0, 3_600_000),
    ];
    const calls = started.map((call) => watch(call));
    await pass(90_000);
    expect(calls.map(({ outcome }) => outcome)).toEqual(Array(3).fill("UNAVAILABLE"));
    await a.letGo();
    await pass(1_000);
    expect([await plain.availablePermits(), await leased.availablePermits()]).toEqual([3, 3]);
    for (const name of ["plain", "leased"]) server.delete(name);
  },
  [PLAIN],
);
