/** Contract section 4: masters that answer late: they join the hold of the majority, or their grant is given back. */
import { expect } from "vitest";
import { RedLock } from "../../../src/index.js";
import { failure, NAME, watch } from "../../support/place/index.js";
import { ANSWER, LEASE, redRow } from "./masters.js";

const FORCED = { code: "LOCK_LOST", reason: "forced" };

redRow(
  "a late grant joins the hold, and is extended, told and given back with it [§4 red]",
  async ({ a, red, heldOn, settle }) => {
    a.at(2).keep("replies");
    const hold = await red.lock({ lease: LEASE });
    const { ownerId } = hold;
    expect(hold.members).toHaveLength(2);
    const extended = watch(hold.extend(2 * LEASE));
    await settle();
    expect(extended.state).toBe("resolved");
    await a.letGo();
    expect(hold.members).toHaveLength(3);
    expect(hold.ownerId).toBe(ownerId);
    for (const { remaining } of hold.members) expect(remaining).toBeGreaterThan(1.5 * LEASE);
    await hold.unlock();
    await settle();
    expect(heldOn()).toEqual([]);
  },
);

redRow(
  "a nested hold has the ownerId of the outer one, though the first master has joined in between [§4 red] [B308]",
  async ({ a, red, pass }) => {
    a.at(0).keep("replies");
    const outer = await red.lock();
    await a.letGo();
    expect(outer.members).toHaveLength(3);
    const nested = await red.lock({ owner: outer });
    await pass(0);
    const third = await red.lock({ owner: nested });
    expect([nested.ownerId, third.ownerId]).toEqual([outer.ownerId, outer.ownerId]);
    for (const hold of [third, nested, outer]) await hold.unlock();
  },
);

redRow(
  "a late grant on its way while the hold ends goes with it: given back, expired or aborted [§4 red]",
  async ({ a, red, pass, settle, heldOn, servers }) => {
    a.at(2).keep("replies");
    const given = await red.lock({ lease: LEASE });
    expect(heldOn()).toEqual([0, 1, 2]);
    await given.unlock();
    await settle();
    expect(heldOn()).toEqual([]);
    await a.letGo();
    expect([given.members.length, heldOn()]).toEqual([2, []]);
    // The late grant asks for no second END.
    expect(servers.map((server) => server.took().length)).toEqual([2, 2, 2]);

    a.at(2).keep("replies");
    const over = await red.lock({ lease: 40_000 });
    await pass(40_000);
    expect(over.isHeld).toBe(false);
    await a.letGo();
    expect(await failure(over.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect([over.members.length, heldOn()]).toEqual([2, []]);

    a.at(1, 2).keep("replies");
    const controller = new AbortController();
    const call = watch(red.lock({ lease: LEASE, signal: controller.signal }));
    await settle();
    controller.abort("given up");
    await settle();
    expect([call.outcome, heldOn()]).toEqual(["given up", []]);
    await a.letGo();
    expect(heldOn()).toEqual([]);
  },
);

redRow(
  "a try that reaches its master after the hold has ended, or after its time, leaves nothing there [§4 red]",
  async ({ a, red, pass, settle, heldOn }) => {
    a.at(2).keep("requests");
    const first = await red.lock({ lease: LEASE });
    await first.unlock();
    await a.letGo();
    await settle();
    expect(heldOn()).toEqual([]);
    a.at(2).keep("requests");
    const second = await red.lock({ lease: LEASE });
    await pass(ANSWER);
    await a.letGo();
    await pass(ANSWER);
    expect([second.members.length, heldOn()]).toEqual([2, [0, 1]]);
    await second.unlock();
  },
);

redRow(
  "a call of the owner on a late master's lock goes with the late try, and re-enters its grant [§3 call-order]",
  async ({ a, red, settle, heldOn }) => {
    a.at(2).keep("replies");
    const hold = await red.lock({ lease: LEASE });
    const member = a.clients[2]?.getLock(NAME);
    const nested = watch(member?.lock({ lease: LEASE, owner: hold }) ?? Promise.reject());
    await settle();
    await a.letGo();
    expect(hold.members).toHaveLength(3);
    expect(nested.value?.ownerId).toBe(hold.members[2]?.ownerId);
    await hold.unlock();
    await settle();
    expect(heldOn()).toEqual([2]);
    await nested.value?.unlock();
  },
);

redRow(
  "unlock() resolves when a majority has confirmed, also with a member that joined late [§4 red-unlock]",
  async ({ a, red, settle, heldOn }) => {
    a.at(2).keep("replies");
    const hold = await red.lock({ lease: LEASE });
    await a.letGo();
    a.at(0).keep("requests");
    const released = watch(hold.unlock());
    await settle();
    expect([released.state, hold.isHeld, heldOn()]).toEqual(["resolved", false, [0]]);
    await a.letGo();
    await hold.unlock();
    expect(heldOn()).toEqual([]);
  },
);

redRow(
  "a waiting call whose round no majority answered in time tries again when late answers come [§4 red-quorum] [B20]",
  async ({ a, red, occupy, vacate, pass, servers }) => {
    occupy(0, 1, 2);
    const call = watch(red.lock({ lease: LEASE }));
    await pass(1_000);
    a.at(0, 1).keep("replies");
    // Messages from two masters are a majority, and call for a round.
    for (const server of servers.slice(0, 2))
      server.execute(["PUBLISH", `redisson_lock__channel:{${NAME}}`, "0"]);
    await pass(2 * ANSWER);
    expect(call.state).toBe("pending");
    for (const server of servers) server.delete();
    await a.at(0, 1).letGo();
    await pass(1_000);
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
    vacate(0, 1, 2);
  },
  { pollCap: 3_600_000 },
);

redRow(
  "a round does not ask a master again that owes an answer, and late refusals let the call sleep on [§4 red-quorum]",
  async ({ a, red, occupy, vacate, pass, servers, settle }) => {
    occupy(0, 1, 2);
    const call = watch(red.lock({ lease: LEASE }));
    await pass(1_000);
    a.at(2).keep("requests");
    const mislead = async () => {
      for (const server of servers.slice(0, 2))
        server.execute(["PUBLISH", `redisson_lock__channel:{${NAME}}`, "0"]);
      await pass(2 * ANSWER);
    };
    await mislead();
    const owed = a.at(2).onTheirWay;
    await mislead();
    expect(a.at(2).onTheirWay).toBe(owed);
    await a.letGo();
    await pass(ANSWER);
    for (const server of servers) server.took();
    await pass(60_000);
    expect(servers.flatMap((server) => server.took())).toEqual([]);
    expect(call.state).toBe("pending");
    vacate(0, 1, 2);
    await pass(1_000);
    await settle();
    await call.value?.unlock();
  },
  { pollCap: 3_600_000, commandTimeout: 50_000 },
);

redRow(
  "a call made before the last unlock re-enters, though the first master answers last [§3 unlock-during-nested] [B84]",
  async ({ a, red, client, settle }) => {
    await client.scope(async () => {
      const first = await red.lock({ lease: LEASE });
      a.at(0).keep("replies");
      const nesting = watch(red.lock({ lease: LEASE }));
      const unlocking = watch(first.unlock());
      await settle();
      expect(nesting.value?.ownerId).toBe(first.ownerId);
      await a.letGo();
      await settle();
      expect(unlocking.state).toBe("resolved");
      await nesting.value?.unlock();
    });
  },
);

for (const gone of [
  [0, 1, 2],
  [0, 1],
  [1, 2],
])
  redRow(
    `when masters ${gone} have forgotten a hold, the owner's next call has a new id, though master 0 is late [§2 lost-unlock-once] [B129]`,
    async ({ a, red, client, servers, settle, pass }) => {
      await client.scope(async () => {
        // A first member that still has the owner's grant, and says so in time, keeps that grant's id.
        for (const isLate of gone.includes(2) ? (gone.includes(0) ? [true, false] : [true]) : [false]) {
          const outer = await red.lock({ lease: LEASE });
          await settle();
          for (const i of gone) servers[i]?.delete();
          if (isLate) a.at(0).keep("replies");
          const next = watch(red.tryLock(0, LEASE));
          await pass(isLate ? ANSWER : 0);
          const hold = next.value;
          expect([outer.isHeld, hold?.isHeld]).toEqual([false, true]);
          expect(hold?.ownerId).toBe(hold?.members[0]?.ownerId);
          expect(hold?.ownerId).not.toBe(outer.ownerId);
          await a.letGo();
          expect(await failure(outer.unlock())).toMatchObject({ code: "LOCK_LOST" });
          expect(hold?.isHeld).toBe(true);
          await hold?.unlock();
          await pass(ANSWER);
        }
      });
    },
  );

redRow(
  "with a minority forgotten the owner re-enters by the majority, counts what answers, and wins it back after its last unlock [§4 red-kept] [§4 group-face]",
  async ({ a, red, client, servers, settle, pass, heldOn }) => {
    await client.scope(async () => {
      const outer = await red.lock({ lease: LEASE });
      await settle();
      servers[1]?.delete();
      const inner = await red.lock({ lease: LEASE });
      const innermost = await red.tryLock(0, LEASE);
      expect([outer.isHeld, inner.isHeld, innermost?.isHeld]).toEqual([true, true, true]);
      expect(await red.getHoldCount()).toBe(3);
      a.at(2).keep("requests");
      const ofTwo = watch(red.getHoldCount());
      await pass(ANSWER);
      expect(ofTwo.outcome).toBe(2);
      await a.letGo();
      for (const hold of [inner, outer, innermost]) await hold?.unlock();
      await settle();
      const again = await red.lock({ lease: LEASE });
      await settle();
      expect(heldOn()).toEqual([0, 1, 2]);
      await again.unlock();
    });
  },
);

redRow(
  "a hold that is given back behind another command of its own wakes the waiter [§2 woken-by-message] [B181]",
  async ({ red, pass, settle }) => {
    const first = await red.lock({ lease: LEASE });
    const [second, third] = [watch(red.lock({ lease: LEASE })), watch(red.lock({ lease: LEASE }))];
    await pass(1_000);
    await first.unlock();
    await pass(100);
    const hold = [second, third].find(({ state }) => state === "resolved")?.value;
    const extended = hold?.extend(2 * LEASE);
    await hold?.unlock();
    await extended?.catch(() => {});
    await pass(100);
    for (const { value } of [second, third]) if (value?.isHeld) await value.unlock();
    await settle();
    expect([second.state, third.state]).toEqual(["resolved", "resolved"]);
  },
  { pollCap: 3_600_000 },
);

redRow(
  "a call whose grants are on their way when another client forces the lock gets a hold that is lost [§2 force-unlock] [B131]",
  async ({ b, red, theirs, settle, heldOn }) => {
    b.keep("replies");
    const call = watch(theirs.lock({ lease: LEASE }));
    await settle();
    expect(heldOn()).toEqual([0, 1, 2]);
    const forced = watch(red.forceUnlock());
    await settle();
    expect(heldOn()).toEqual([]);
    await b.letGo();
    await settle();
    expect(forced.outcome).toBe(true);
    const outcome = call.value ? await failure(call.value.unlock()) : call.error;
    expect(outcome).toMatchObject({ code: "LOCK_LOST" });
  },
);

redRow(
  "forceUnlock() counts the votes of the others when one master has just fallen silent [§2 force-unlock] [B182]",
  async ({ a, red, pass, heldOn }) => {
    const hold = await red.lock();
    a.at(2).keep("requests");
    const forced = watch(red.forceUnlock());
    await pass(ANSWER);
    expect(forced.outcome).toBe(true);
    expect(hold.signal.reason).toMatchObject(FORCED);
    expect(await failure(hold.unlock())).toMatchObject(FORCED);
    await a.letGo();
    await red.forceUnlock();
    expect(heldOn()).toEqual([]);
  },
);

redRow(
  "of RedLocks of read sides many are held at once, and one of write sides waits for all and is woken [§4 read-write]",
  async ({ a, b, pass }) => {
    const of = ({ clients }: typeof a, side: "readLock" | "writeLock") =>
      new RedLock(...clients.map((client) => client.getReadWriteLock("sides")[side]()));
    const readers = [await of(a, "readLock").lock(), await of(b, "readLock").lock()];
    expect(await of(b, "writeLock").tryLock()).toBeNull();
    const writing = watch(of(a, "writeLock").lock());
    for (const reader of readers) {
      await pass(100);
      expect(writing.outcome).toBe("pending");
      await reader.unlock();
    }
    await pass(200);
    expect(await of(b, "readLock").tryLock()).toBeNull();
    await writing.value?.unlock();
  },
);
