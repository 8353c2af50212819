/**
 * The owner of a RedLock's hold: scopes, runs, bare calls, also after a minority is lost; and what a client's close
 * ends.
 */
import { expect, test } from "vitest";
import { failure, recordEvents, untilWaiting } from "../contract/helpers.js";
import { script, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import {
  expectNothingLeft,
  forget,
  heldOn,
  joined,
  LONG,
  NEVER,
  occupy,
  Party,
  takeAll,
  unlockAll,
  useMasters,
  vacate,
} from "./red-helpers.js";

const masters = await useMasters(3);

function counts({ servers, name }: Party): Promise<unknown[]> {
  return Promise.all(servers.map(async (server) => String(await server.call("HVALS", name))));
}

test("bare calls re-enter nothing; in a scope each lock counts, and unlock gives back the innermost", async () => {
  await using party = await Party.of(masters);
  const { lock } = party;
  const bare = await lock.lock();
  expect(await lock.tryLock()).toBeNull();
  expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
  await bare.unlock();
  await party.client(2).scope(async () => {
    const holds = [await lock.lock(), await party.make().lock({ lease: LONG }), await lock.tryLock()];
    expect(await counts(party)).toEqual(["3", "3", "3"]);
    expect(await lock.getHoldCount()).toBe(3);
    expect(await lock.isHeldByCurrentOwner()).toBe(true);
    await lock.unlock();
    expect(holds.map((hold) => hold?.isHeld)).toEqual([true, true, false]);
    await lock.unlock();
    await lock.unlock();
    expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
    expect(await failure((holds[0] ?? bare).unlock())).toMatchObject({ code: "NOT_OWNER" });
    expect(await lock.getHoldCount()).toBe(0);
  });
  await expectNothingLeft(party);
});

test("a call that was made before the last unlock re-enters [B84]", async () => {
  await using party = await Party.of(masters);
  const { lock } = party;
  await party.client(0).scope(async () => {
    const first = await joined(await lock.lock());
    // Master 0 answers last.
    party.proxy(0).delayReplies(NEVER, script("reenter", party.name));
    const nesting = lock.lock();
    const unlocking = first.unlock();
    const second = await nesting;
    expect(second.ownerId).toBe(first.ownerId);
    party.proxy(0).restore();
    await unlocking;
    await (await joined(second)).unlock();
  });
  await expectNothingLeft(party);
});

test("parallel calls of one scope are one owner's", async () => {
  await using party = await Party.of(masters);
  await using other = await Party.of(masters, { name: party.name });
  const hold = await other.lock.lock();
  await party.client(0).scope(async () => {
    const first = await untilWaiting(party.client(0), () => party.lock.lock());
    const rest = [party.lock.lock(), party.lock.lock()];
    await hold.unlock();
    const holds = await Promise.all([first.done, ...rest]);
    await until("each counts on a majority", async () => (await party.lock.getHoldCount()) === 3);
    await unlockAll(holds);
  });
  await expectNothingLeft(party);
});

test("events of a call without a hold tell an owner id of the first master, on each master's client [B237]", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  const events = party.clients.map((client) => recordEvents(client));
  const told = () =>
    events.map((each) =>
      each.flatMap(({ name, payload }) => (payload.kind === "red" ? { name, ownerId: payload.ownerId } : [])),
    );
  await occupy(party, [0, 1, 2], LONG);
  expect(await party.lock.tryLock(0, LONG)).toBeNull();
  const [one] = told()[0] as { ownerId: string }[];
  expect(one?.ownerId).toMatch(new RegExp(`^${party.client(0).id}:\\d+$`));
  const rejected = { name: "rejected", ownerId: one?.ownerId };
  expect(told()).toEqual(Array(3).fill([rejected]));
  const controller = new AbortController();
  party.client(0).on("waiting", ({ kind }) => void (kind === "red" && controller.abort()));
  await failure(party.lock.lock({ lease: LONG, signal: controller.signal }));
  const ownerId = told()[0]?.at(-1)?.ownerId;
  expect(ownerId).not.toBe(one?.ownerId);
  expect(told()).toEqual(
    Array(3).fill([rejected, { name: "waiting", ownerId }, { name: "gaveUp", ownerId }]),
  );
  await vacate(party, [0, 1, 2]);
});

test.for([
  ["a master that it had not", 1],
  ["the masters that it had", 2],
] as const)(
  "a hold of an owner that has a majority is nested, whoever answers first: %s [B235]",
  async ([, last]) => {
    await using party = await Party.of(masters);
    await party.warmUp();
    const nested: boolean[] = [];
    party.client(0).on("acquired", ({ kind, nested: told }) => void (kind === "red" && nested.push(told)));
    await occupy(party, [2], LONG);
    const outer = await party.lock.lock();
    await vacate(party, [2], false);
    party.proxy(last).delayReplies(NEVER, script(last === 2 ? "acquire" : "reenter", party.name));
    const inner = await party.lock.lock({ owner: outer, lease: LONG });
    expect(nested).toEqual([false, true]);
    party.proxy(last).restore();
    await joined(inner);
    await inner.unlock();
    await outer.unlock();
    await expectNothingLeft(party);
  },
);

test("a nested run re-enters, siblings take turns, strangers wait", async () => {
  await using party = await Party.of(masters);
  const { lock } = party;
  let inside = 0;
  await lock.run(async (outer) => {
    expect(await party.make().run(() => lock.getHoldCount())).toBe(2);
    const sibling = (): Promise<void> =>
      lock.run(async (hold) => {
        expect(++inside).toBe(1);
        expect(hold.ownerId).toBe(outer.ownerId);
        await lock.run(() => Promise.resolve());
        inside--;
      });
    await Promise.all([sibling(), sibling(), sibling()]);
    const stranger = party.client(0).newOwner();
    expect(await stranger.scope(() => lock.tryLock())).toBeNull();
    expect(await lock.getHoldCount()).toBe(1);
    // A member's own lock is held too.
    expect(await party.client(1).getLock(party.name).getHoldCount()).toBe(1);
  });
  await expectNothingLeft(party);
});

test("with a minority forgotten, further calls re-enter by the majority, and win it back when all is given back", async () => {
  await using party = await Party.of(masters);
  const { lock } = party;
  await party.client(0).scope(async () => {
    const outer = await lock.lock({ lease: LONG });
    await forget(party, outer, 1);
    const inner = await lock.lock({ lease: LONG });
    expect([outer.isHeld, inner.isHeld]).toEqual([true, true]);
    expect(await lock.getHoldCount()).toBe(2);
    const innermost = await lock.tryLock(0, LONG);
    expect(innermost?.isHeld).toBe(true);
    await unlockAll([inner, outer, innermost]);
  });
  await lock.run(async (hold) => {
    await forget(party, hold, 0);
    expect(await lock.run(() => lock.isHeldByCurrentOwner())).toBe(true);
  });
  await expectNothingLeft(party);
});

test("validity counts from the call's round, also where its command stands behind another one of its owner", async () => {
  await using party = await Party.of(masters);
  const { lock } = party;
  await party.client(0).scope(async () => {
    const outer = await lock.lock({ lease: LONG });
    for (const proxy of party.proxies) proxy.delayReplies(300, script("extend"));
    const extended = outer.extend(LONG);
    const inner = await lock.lock({ lease: LONG });
    expect(inner.remaining).toBeLessThanOrEqual(0.99 * LONG - 2 - 290);
    await extended;
    await unlockAll([inner, outer]);
  });
  await expectNothingLeft(party);
});

for (const gone of [
  [0, 1, 2],
  [0, 1],
  [1, 2],
]) {
  test(`when masters ${gone.join()} have forgotten the hold, the next call starts afresh`, async () => {
    await using party = await Party.of(masters);
    const { lock } = party;
    await party.client(0).scope(async () => {
      const outer = await lock.lock({ lease: LONG });
      await forget(party, outer, ...gone);
      // Master 0 answers first.
      for (const proxy of party.proxies.slice(1)) proxy.delayReplies(200, script("reenter"));
      const next = await lock.tryLock(0, LONG);
      expect(next?.isHeld).toBe(true);
      expect(outer.isHeld).toBe(false);
      expect(next?.ownerId).not.toBe(outer.ownerId);
      expect(await failure(outer.unlock())).toMatchObject({ code: "LOCK_LOST" });
      expect(next?.isHeld).toBe(true);
      await next?.unlock();
    });
    await expectNothingLeft(party);
  });
}

for (const gone of [
  [0, 1, 2],
  [1, 2],
]) {
  test(`a hold of masters 1 and 2 has a new id, though ${gone.join()} have forgotten the one before and master 0 is late to say so [B129]`, async () => {
    await using party = await Party.of(masters);
    const { lock } = party;
    await party.client(0).scope(async () => {
      const outer = await lock.lock({ lease: LONG });
      await forget(party, outer, ...gone);
      party.proxy(0).delayReplies(NEVER, script("reenter", party.name));
      const next = await lock.tryLock(0, LONG);
      expect([outer.isHeld, next?.isHeld]).toEqual([false, true]);
      expect(next?.ownerId).toBe(next?.members[0]?.ownerId);
      expect(next?.ownerId).not.toBe(outer.ownerId);
      party.proxy(0).restore();
      await next?.unlock();
    });
    await expectNothingLeft(party);
  });
}

for (const closed of [0, 2]) {
  test(`closing client ${closed} ends calls that wait, and nothing of them is left`, async () => {
    await using party = await Party.of(masters, { client: { pollCap: NEVER } });
    await using other = await Party.of(masters, { name: party.name });
    const hold = await other.lock.lock();
    const waiting = await untilWaiting(party.client(0), () => party.lock.lock());
    const behind = watch(party.lock.lock());
    const waits = watch(waiting.done);
    await party.client(closed).close();
    expect([waits.state, behind.state]).toEqual(["rejected", "rejected"]);
    const gone = { code: "CLIENT_CLOSED", lockName: party.lock.name };
    expect(await failure(waiting.done)).toMatchObject(gone);
    expect(await failure(behind.promise)).toMatchObject(gone);
    expect(await failure(party.lock.lock())).toMatchObject(gone);
    expect(await failure(party.lock.isLocked())).toMatchObject(gone);
    expect(await heldOn(party)).toEqual([0, 1, 2]);
    await hold.unlock();
    await expectNothingLeft(party);
  });

  test(`a hold outlives the close of client ${closed}; with a second one closed it is lost`, async () => {
    await using party = await Party.of(masters);
    const hold = await takeAll(party);
    await party.client(closed).close({ timeout: 0 });
    expect(hold.isHeld).toBe(true);
    await until("that part is given back", async () => !(await heldOn(party)).includes(closed));
    await party.client(1).close({ timeout: 0 });
    expect(hold.isHeld).toBe(false);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    await hold.unlock();
    await expectNothingLeft(party);
  });
}

test("a close lets holds end by themselves, and the run says LOCK_LOST when it has ended them", async () => {
  await using party = await Party.of(masters);
  const run = party.lock.run(async (hold) => {
    await Promise.all(party.clients.map((client) => client.close({ timeout: 0 })));
    expect(hold.signal.aborted).toBe(true);
    return "result";
  });
  expect(await failure(run)).toMatchObject({ code: "LOCK_LOST", reason: "closed", result: "result" });
  await expectNothingLeft(party);
});
