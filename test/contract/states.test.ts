/**
 * The two state tables, cell by cell: of a call (`waiting/waiter.ts`, `lock/call.ts`), and of a grant (`lock/grant.ts`). Each
 * cell is reached and seen through the public face; what its event means for each kind of lock is in the other files here.
 */
import { expect, test } from "vitest";
import type { Hold, LockOptions, Owner } from "../../src/index.js";
import {
  deferred,
  failure,
  type Kind,
  openVirtual,
  PLAIN,
  STRANGER,
  type VirtualPlace,
  type Watched,
  WRITE,
  watch,
} from "../support/place/index.js";
import { expectNothingLeft } from "../support/place/virtual.js";

const COMMAND_TIMEOUT = 1_000;
const LEASE = 60_000;
const OPTIONS = { pollCap: 600_000, commandTimeout: COMMAND_TIMEOUT, watchdogTimeout: 900_000 };

type Body = (place: VirtualPlace) => unknown;

/** One cell: what happens, in which state, and what follows. */
function cell(event: string, state: string, then: string, body: Body, kind: Kind = PLAIN): void {
  test(`${event} / ${state}: ${then}`, async () => {
    const place = openVirtual(kind, OPTIONS);
    await body(place);
    await expectNothingLeft(place);
  });
}

// A call

/** A call in some state. */
interface Staged {
  readonly call: Watched<Hold>;
  readonly owner: Owner;
  /** What it waits for happens: its answer comes, the lock is given back, its owner's run ends. */
  free(): Promise<unknown>;
}

type Stage = (place: VirtualPlace, options?: LockOptions) => Promise<Staged>;

/** Its command is on its way. */
const trying: Stage = async ({ a, client, lock, settle }, options) => {
  const owner = client.newOwner();
  a.keep("requests");
  const call = watch(lock.lock({ owner, ...options }));
  await settle();
  return { call, owner, free: () => a.letGo() };
};

/** It was refused, and is the first in line. */
const asleep: Stage = async ({ client, lock, rival, settle }, options) => {
  const owner = client.newOwner();
  const theirs = await rival.lock({ lease: LEASE });
  const call = watch(lock.lock({ owner, ...options }));
  await settle();
  return { call, owner, free: () => theirs.unlock() };
};

/** It stands behind another call. */
const queued: Stage = async (place, options) => {
  const controller = new AbortController();
  const ahead = await asleep(place, { signal: controller.signal });
  const owner = place.client.newOwner();
  const call = watch(place.lock.lock({ owner, ...options }));
  await place.settle();
  const free = async () => {
    controller.abort("enough");
    await failure(ahead.call.promise);
    await ahead.free();
  };
  return { call, owner, free };
};

/** A run of its owner goes first. */
const aside: Stage = async ({ client, lock, settle }, options) => {
  const owner = client.newOwner();
  const end = deferred();
  const sibling = watch(lock.run(() => end.promise, { owner }));
  await settle();
  const call = watch(lock.run((hold) => hold, { owner, ...options }));
  await settle();
  const free = () => {
    end.resolve();
    return sibling.promise.catch(() => {});
  };
  return { call, owner, free };
};

const STAGES: Readonly<Record<string, Stage>> = { trying, queued, asleep, aside };

/** The call gets the lock, and gives it back. */
async function served({ call }: Staged, { settle, pass }: VirtualPlace): Promise<void> {
  await settle();
  expect(call.outcome).toBeInstanceOf(Object);
  expect(call.state).toBe("resolved");
  await call.value?.unlock();
  await pass(100);
}

for (const [state, stage] of Object.entries(STAGES)) {
  cell(state === "trying" ? "granted" : "woken", state, "over, with a hold", async (place) => {
    const staged = await stage(place);
    expect(staged.call.outcome).toBe("pending");
    await staged.free();
    await served(staged, place);
  });

  cell("time is up", state, "over", async (place) => {
    const staged = await stage(place, { wait: 500 });
    await place.pass(500);
    expect(staged.call.outcome).toBe(state === "trying" ? "UNAVAILABLE" : "WAIT_TIMEOUT");
    await staged.free();
    await place.settle();
  });

  cell("abort", state, "over", async (place) => {
    const controller = new AbortController();
    const staged = await stage(place, { signal: controller.signal });
    controller.abort("enough");
    await place.settle();
    expect(staged.call.outcome).toBe("enough");
    await staged.free();
    await place.settle();
  });

  cell("close", state, "over", async (place) => {
    const staged = await stage(place);
    const closing = place.a.close({ timeout: 0 });
    await place.settle();
    expect(staged.call.outcome).toBe("CLIENT_CLOSED");
    await staged.free();
    await closing;
  });
}

cell("granted", "over", "what it got is given back", async (place) => {
  const controller = new AbortController();
  const { call, free } = await trying(place, { signal: controller.signal });
  controller.abort("enough");
  await free();
  expect(call.outcome).toBe("enough");
  expect(await place.view.hash()).toEqual({});
});

cell("refused", "trying", "asleep, queued behind others, or over without a wait", async (place) => {
  const { lock, rival, settle, server } = place;
  const theirs = await rival.lock();
  const calls = [watch(lock.lock()), watch(lock.lock())];
  await settle();
  server.took();
  expect(await lock.tryLock()).toBeNull();
  await theirs.unlock();
  await settle();
  expect(calls.map(({ state }) => state)).toEqual(["resolved", "pending"]);
  await calls[0]?.value?.unlock();
  await settle();
  await calls[1]?.value?.unlock();
});

cell("no answer", "trying", "over, but asleep if it had waited", async (place) => {
  const { a, pass } = place;
  const fresh = await trying(place);
  await pass(COMMAND_TIMEOUT);
  expect(fresh.call.outcome).toBe("UNAVAILABLE");
  await fresh.free();
  const waited = await asleep(place);
  a.keep("requests");
  await waited.free();
  await pass(2 * COMMAND_TIMEOUT);
  expect(waited.call.outcome).toBe("pending");
  await a.letGo();
  await served(waited, place);
});

cell("becomes first", "queued", "asleep", async (place) => {
  const { rival, lock, settle } = place;
  const theirs = await rival.lock();
  const controller = new AbortController();
  const first = watch(lock.lock({ signal: controller.signal }));
  const second = watch(lock.lock());
  await settle();
  controller.abort("enough");
  await settle();
  expect([first.outcome, second.outcome]).toEqual(["enough", "pending"]);
  await theirs.unlock();
  await settle();
  await second.value?.unlock();
});

cell("woken", "trying", "tries once more", async (place) => {
  const { a, rival, lock, settle, pass } = place;
  const theirs = await rival.lock({ lease: 5_000 });
  const call = watch(lock.lock());
  await settle();
  a.keep("replies");
  await pass(4_000);
  await theirs.extend(LEASE);
  // Its try at the end of the lease that it knows is refused, and the answer is overtaken by the message.
  await pass(1_100);
  expect(a.onTheirWay).toBeGreaterThan(0);
  await theirs.unlock();
  await settle();
  await a.letGo();
  expect(call.value?.isHeld).toBe(true);
  await call.value?.unlock();
});

for (const [state, stage] of [
  ["queued", queued],
  ["asleep", asleep],
] as const) {
  cell("its owner is granted elsewhere", state, "nests", async (place) => {
    const { server, lock, settle, view } = place;
    const { call, owner, free } = await stage(place);
    server.delete();
    const elsewhere = await lock.tryLock(0, LEASE, { owner });
    await settle();
    expect(call.value?.ownerId).toBe(elsewhere?.ownerId);
    expect(await view.count()).toBe(2);
    // What the lock was taken from is lost.
    expect(await failure(free)).toMatchObject({ code: "LOCK_LOST" });
    await elsewhere?.unlock();
    await call.value?.unlock();
  });
}

cell("its owner is granted elsewhere", "aside", "nests, once it has its turn", async (place) => {
  const { lock, settle } = place;
  const { call, owner, free } = await aside(place);
  const elsewhere = await lock.lock({ owner });
  expect(call.outcome).toBe("pending");
  await free();
  await settle();
  expect(call.value?.ownerId).toBe(elsewhere.ownerId);
  await elsewhere.unlock();
});

cell("granted, though its owner has a grant", "trying", "ends its own id, and nests", async (place) => {
  const { a, client, lock, server, settle, view } = place;
  const owner = client.newOwner();
  a.keep("replies");
  const calls = [watch(lock.lock({ owner, lease: LEASE }))];
  await settle();
  server.delete();
  calls.push(watch(lock.lock({ owner, lease: LEASE })));
  await settle();
  await a.letGo();
  // The first one's grant was deleted, as the nested call finds out; so it takes the lock anew.
  const [first, second] = calls.map(({ value }) => value as Hold) as [Hold, Hold];
  expect([first.isHeld, second.isHeld, await view.hash()]).toEqual([false, true, { [second.ownerId]: "1" }]);
  expect(await failure(first.unlock())).toMatchObject({ code: "LOCK_LOST" });
  await second.unlock();
});

for (const kind of [PLAIN, WRITE]) {
  const then = `LOCK_LOST, or a fresh id if it had waited: ${kind.name} [B290]`;
  const body: Body = async (place) => {
    const { a, client, lock, pass } = place;
    a.keep("replies");
    const late = watch(lock.lock({ lease: 500 }));
    await pass(600);
    await a.letGo();
    expect(late.outcome).toBe("LOCK_LOST");
    // Redis grants it in time, or when the deadline here has passed, so its id is ended while it has the lock.
    for (const way of ["replies", "requests"] as const) {
      const waited = await asleep(place, { lease: 500 });
      a.keep(way);
      await waited.free();
      await pass(600);
      await a.letGo();
      await served(waited, place);
    }
    // No writer is said to wait, before whom no reader would go.
    await client
      .getReadWriteLock(lock.name)
      .readLock()
      .run(() => {}, { wait: 0 });
  };
  cell("granted too late", "trying", then, body, kind);
}

cell("its id is over", "trying", "goes on under a fresh id", async (place) => {
  const { a, lock, rival, settle } = place;
  a.keep("replies");
  const call = watch(lock.lock());
  await settle();
  const [taken] = Object.keys(await place.view.hash());
  await rival.forceUnlock();
  await a.reconnect();
  await settle();
  expect(call.value?.isHeld).toBe(true);
  expect(call.value?.ownerId).not.toBe(taken);
  await call.value?.unlock();
});

cell("refused by its own owner", "trying", "aside, until that call is answered", async (place) => {
  const { a, client, lock, settle } = place;
  const owner = client.newOwner();
  a.keep("replies");
  const calls = [1, 2].map(() => watch(lock.tryLock(1_000, LEASE, { owner })));
  await settle();
  await a.letGo();
  expect(new Set(calls.map(({ value }) => value?.ownerId)).size).toBe(1);
  for (const { value } of calls) await value?.unlock();
});

cell("a release passes the lock on", "queued, asleep", "granted by that command", async (place) => {
  const { lock, server, settle } = place;
  const hold = await lock.lock();
  const calls = [1, 2].map(() => watch(lock.lock()));
  await settle();
  server.took();
  await hold.unlock();
  await settle();
  await calls[0]?.value?.unlock();
  await settle();
  expect(server.took()).toEqual(["plain/pass", "plain/pass"]);
  await calls[1]?.value?.unlock();
});

cell("a sibling run has its turn", "queued, asleep", "aside", async (place) => {
  const { client, lock, rival, settle } = place;
  const theirs = await rival.lock();
  const owner = client.newOwner();
  const end = deferred();
  const runs = [() => end.promise, () => {}].map((fn) => watch(lock.run(fn, { owner })));
  await settle();
  await theirs.unlock();
  await settle();
  expect(runs.map(({ state }) => state)).toEqual(["pending", "pending"]);
  end.resolve();
  await settle();
  expect(runs.map(({ state }) => state)).toEqual(["resolved", "resolved"]);
});

// A grant

/** An owner's hold, and a nested one. */
async function nested({ lock }: VirtualPlace): Promise<{ readonly outer: Hold; readonly inner: Hold }> {
  const outer = await lock.lock({ lease: LEASE });
  return { outer, inner: await lock.lock({ owner: outer, lease: LEASE }) };
}

cell("nested call begins", "held", "its count is added", async (place) => {
  const { outer, inner } = await nested(place);
  expect(await place.view.hash()).toEqual({ [outer.ownerId]: "2" });
  for (const hold of [outer, inner]) await hold.unlock();
});

cell("nested call begins", "ending, over", "is a new grant", async (place) => {
  const { a, lock, settle } = place;
  const hold = await lock.lock();
  a.keep("requests");
  const released = hold.unlock();
  const call = watch(lock.lock({ owner: hold }));
  await settle();
  await a.letGo();
  await released;
  expect(call.value?.ownerId).not.toBe(hold.ownerId);
  await call.value?.unlock();
  const later = await lock.lock({ owner: hold });
  expect(later.ownerId).not.toBe(hold.ownerId);
  await later.unlock();
});

cell(
  "nested call fails",
  "held",
  "its count is taken off; with the last one the grant ends",
  async (place) => {
    const { a, lock, settle, view, pass } = place;
    for (const isLast of [false, true]) {
      const outer = await lock.lock({ lease: LEASE });
      const controller = new AbortController();
      a.keep("requests");
      const call = watch(lock.lock({ owner: outer, signal: controller.signal }));
      const released = isLast ? watch(outer.unlock()) : undefined;
      expect(outer.isHeld).toBe(!isLast);
      controller.abort("enough");
      await settle();
      await a.letGo();
      expect(call.outcome).toBe("enough");
      if (!isLast) await outer.unlock();
      await pass(100);
      expect(released?.state).toBe(isLast ? "resolved" : undefined);
      expect(await view.hash()).toEqual({});
    }
  },
);

cell("unlock, not the last", "held", "KEEP", async (place) => {
  const { outer, inner } = await nested(place);
  await outer.unlock();
  expect([inner.isHeld, await place.view.hash()]).toEqual([true, { [outer.ownerId]: "1" }]);
  await inner.unlock();
});

cell(
  "unlock, not the last",
  "held",
  "a downgrade after the last write",
  async (place) => {
    const read = place.client.getReadWriteLock(place.lock.name).readLock();
    const writing = await place.lock.lock();
    const reading = await read.lock({ owner: writing });
    await writing.unlock();
    expect(await place.view.hash()).toMatchObject({ mode: "read", [writing.ownerId]: "1" });
    await reading.unlock();
  },
  WRITE,
);

cell("unlock", "over", "rejects LOCK_LOST once for each hold", async (place) => {
  const { outer, inner } = await nested(place);
  await place.rival.forceUnlock();
  for (const hold of [inner, outer]) {
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
  }
});

cell("unlock, the last", "held", "END", async (place) => {
  const hold = await place.lock.lock();
  place.server.took();
  await hold.unlock();
  expect([place.server.took(), await place.view.hash()]).toEqual([["plain/end"], {}]);
});

cell("KEEP: found", "held", "the deadline is raised, never lowered", async (place) => {
  const hold = await place.lock.lock({ lease: LEASE });
  await hold.extend(2 * LEASE);
  const inner = await place.lock.lock({ owner: hold, lease: 1_000 });
  expect(inner.remaining).toBeGreaterThan(LEASE);
  for (const each of [inner, hold]) await each.unlock();
});

cell("KEEP: found", "ending, over", "nothing", async (place) => {
  const { a, lock, settle, pass, view } = place;
  const given = await lock.lock({ lease: 500 });
  a.keep("replies");
  const extended = watch(given.extend(LEASE));
  await settle();
  const released = watch(given.unlock());
  await a.letGo();
  expect([released.state, given.isHeld, await view.hash()]).toEqual(["resolved", false, {}]);
  expect(extended.state).not.toBe("pending");
  const lost = await lock.lock({ lease: 500 });
  a.keep("replies");
  const late = watch(lost.extend(LEASE));
  await pass(600);
  await a.letGo();
  expect([lost.isHeld, late.outcome]).toEqual([false, "LOCK_LOST"]);
  expect(await failure(lost.unlock())).toMatchObject({ code: "LOCK_LOST" });
  await pass(100);
  expect(await view.hash()).toEqual({});
});

for (const [how, seize, reason] of [
  ["gone", ({ server }: VirtualPlace) => server.delete(), "expired"],
  ["taken", ({ server }: VirtualPlace) => server.give({ [STRANGER]: "1" }, 1_000), "taken"],
] as const) {
  cell(`KEEP: ${how}`, "held", "over: lost", async (place) => {
    const hold = await place.lock.lock({ lease: LEASE });
    seize(place);
    expect(await failure(hold.extend(2 * LEASE))).toMatchObject({ code: "LOCK_LOST", reason });
    expect(hold.signal.aborted).toBe(true);
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
    await place.pass(1_000);
  });

  cell(`KEEP: ${how}`, "ending", "takes END's answer", async (place) => {
    const { outer, inner } = await nested(place);
    const { a } = place;
    a.keep("requests");
    const calls = [watch(inner.unlock()), watch(outer.unlock())];
    seize(place);
    await a.letGo();
    expect(calls.map(({ outcome }) => outcome)).toEqual(["LOCK_LOST", "LOCK_LOST"]);
    await place.pass(1_000);
  });

  cell(`END: ${how}`, "ending", "over: lost", async (place) => {
    const hold = await place.lock.lock({ lease: LEASE });
    seize(place);
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason });
    await place.pass(1_000);
  });
}

cell("END: found", "ending", "over: given back", async (place) => {
  const { a, lock, settle } = place;
  const hold = await lock.lock();
  a.keep("replies");
  const released = watch(hold.unlock());
  await settle();
  expect(released.outcome).toBe("pending");
  await a.reconnect();
  expect(released.state).toBe("resolved");
});

cell("END: gone", "ending", "given back, if its tombstone may have lapsed", async (place) => {
  const { a, lock, pass } = place;
  const hold = await lock.lock({ lease: LEASE });
  a.keep("replies");
  const released = watch(hold.unlock());
  await pass(61_000);
  expect(released.outcome).toBe("UNAVAILABLE");
  await a.reconnect();
  await hold.unlock();
});

for (const [event, reason, lose] of [
  ["deadline", "expired", ({ pass }: VirtualPlace) => pass(LEASE)],
  ["force", "forced", ({ lock }: VirtualPlace) => lock.forceUnlock()],
  ["close", "closed", ({ a }: VirtualPlace) => a.close({ timeout: 0 })],
] as const) {
  cell(event, "held", "over: lost; END", async (place) => {
    const { outer, inner } = await nested(place);
    await lose(place);
    await place.settle();
    for (const hold of [outer, inner])
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason });
    expect(await place.view.hash()).toEqual({});
    for (const hold of event === "close" ? [] : [outer, inner])
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
  });

  cell(event, "ending, over", "nothing", async (place) => {
    const { a, lock, settle } = place;
    const hold = await lock.lock({ lease: LEASE });
    a.keep("replies");
    const released = watch(hold.unlock());
    await settle();
    const losing = watch(Promise.resolve(lose(place)));
    await settle();
    await a.letGo();
    await place.pass(100);
    expect(hold.signal.aborted).toBe(false);
    expect(losing.state).toBe("resolved");
    if (event !== "deadline") expect(released.state).toBe("resolved");
    else await hold.unlock();
  });
}
