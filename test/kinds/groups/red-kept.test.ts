/** Contract section 4: the watchdog keeps a RedLock while a majority renews in time, and what giving back and extending by majority say. */
import { expect } from "vitest";
import type { Hold, LockError, LockLostError, MultiHold } from "../../../src/index.js";
import { failure, watch } from "../../support/place/index.js";
import { ANSWER, LEASE, redRow } from "./masters.js";

/** `watchdogTimeout`, of which a third passes between two renewals. */
const KEPT = 30_000;

redRow(
  "a hold without a lease outlives a minority that is away, and its member there is lost [§4 red-kept] [F39]",
  async ({ a, red, pass, settle }) => {
    const hold = await red.lock();
    await settle();
    await a.at(1).cut();
    await pass(2 * KEPT);
    const lost = hold.members[1] as Hold;
    expect([hold.isHeld, hold.signal.aborted, lost.isHeld]).toEqual([true, false, false]);
    expect(lost.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
    hold.assertHeld();
    const released = watch(hold.unlock());
    await settle();
    expect(released.state).toBe("resolved");
    await a.at(1).mend();
  },
);

redRow(
  "with a majority away it is lost as unreachable at that majority's deadline, not before [§4 red-kept]",
  async ({ a, red, pass, settle, heldOn, client }) => {
    const told: unknown[] = [];
    client.on("lost", (event) => void (event.kind === "red" && told.push(event)));
    const hold = await red.lock();
    await settle();
    await a.at(0, 2).cut();
    const { remaining } = hold;
    await pass(Math.ceil(remaining) - 1);
    expect([hold.isHeld, hold.signal.aborted]).toEqual([true, false]);
    await pass(2);
    expect([hold.isHeld, hold.signal.aborted]).toEqual([false, true]);
    expect(told).toMatchObject([{ lockName: red.name, ownerId: hold.ownerId, reason: "unreachable" }]);
    // What is left on the third master is given back: it would be kept for nothing.
    expect(heldOn()).not.toContain(1);
    const error = (await failure(hold.unlock())) as LockLostError;
    expect(error).toMatchObject({ code: "LOCK_LOST", reason: "unreachable", lockName: red.name });
    expect(error).toBe(hold.signal.reason);
    expect(error.errors).toHaveLength(2);
    await a.at(0, 2).mend();
    await pass(KEPT);
    expect(heldOn()).toEqual([]);
  },
);

redRow(
  "masters that have forgotten it take it only as a majority, and then by the next renewal [§4 red-kept]",
  async ({ red, servers, pass, settle, heldOn }) => {
    const hold = await red.lock();
    await settle();
    servers[2]?.delete();
    await pass(KEPT / 3);
    expect([hold.isHeld, hold.members[2]?.isHeld]).toEqual([true, false]);
    expect(heldOn()).toEqual([0, 1]);
    expect(await red.isLocked()).toBe(true);
    servers[1]?.delete();
    await pass(KEPT / 3);
    expect(hold.isHeld).toBe(false);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await settle();
    expect(heldOn()).toEqual([]);
    expect(await failure(hold.unlock())).toBe(hold.signal.reason);
  },
);

redRow(
  "the deadline is that of the best majority, whichever members make it [§4 red-kept]",
  async ({ red, settle }) => {
    const hold = await red.lock({ lease: 10_000 });
    await settle();
    expect(hold.remaining).toBe(9_898);
    await hold.members[0]?.extend(60_000);
    expect(hold.remaining).toBe(9_898);
    await hold.members[2]?.extend(20_000);
    expect(hold.remaining).toBe(19_798);
    expect(await red.remainTimeToLive()).toBe(20_000);
    await hold.unlock();
  },
);

redRow(
  "extend moves the deadline of a majority, and rejects UNAVAILABLE without one [§2 extend-later]",
  async ({ a, red, pass, settle }) => {
    const hold = await red.lock({ lease: 60_000 });
    await settle();
    a.at(1).keep("requests");
    const one = watch(hold.extend(LEASE));
    await settle();
    expect(one.state).toBe("resolved");
    expect(hold.remaining).toBeGreaterThan(LEASE / 2);
    a.at(2).keep("requests");
    const two = watch(hold.extend(2 * LEASE));
    await pass(ANSWER);
    expect([two.outcome, hold.isHeld]).toEqual(["UNAVAILABLE", true]);
    await a.letGo();
    await hold.unlock();
    expect(await failure(hold.extend(1_000))).toMatchObject({ code: "NOT_OWNER" });
  },
);

redRow(
  "an unlock() without a majority's answer rejects UNAVAILABLE with all errors, and a later one asks again [§2 unlock-unavailable]",
  async ({ a, red, pass, settle, heldOn }) => {
    const hold = await red.lock({ lease: LEASE });
    await settle();
    a.at(0, 1).keep("requests");
    const calls = [watch(hold.unlock()), watch(hold.unlock())];
    expect(hold.isHeld).toBe(false);
    await pass(ANSWER);
    const [error, shared] = calls.map((call) => call.error as LockError);
    expect(error).toMatchObject({ code: "UNAVAILABLE", errors: [expect.anything(), expect.anything()] });
    expect(shared).toBe(error);
    const again = watch(hold.unlock());
    await pass(ANSWER);
    expect([again.outcome, hold.signal.aborted]).toEqual(["UNAVAILABLE", false]);
    await a.letGo();
    await pass(ANSWER);
    await hold.unlock();
    expect(heldOn()).toEqual([]);
    expect(await failure(red.unlock({ owner: hold as never }))).toMatchObject({ code: "NOT_OWNER" });
  },
);

redRow(
  "an unlock() that meets a loss and a silent master rejects with the one that has no majority [§4 red-unlock]",
  async ({ a, red, servers, pass, settle, heldOn }) => {
    const one = await red.lock({ lease: LEASE });
    await settle();
    servers[0]?.delete();
    await one.unlock();
    await settle();
    const two = await red.lock({ lease: LEASE });
    await settle();
    for (const i of [0, 1]) servers[i]?.delete();
    expect(await failure(two.unlock())).toMatchObject({ code: "LOCK_LOST", lockName: expect.any(String) });
    const three = await red.lock({ lease: LEASE });
    await settle();
    servers[0]?.delete();
    a.at(1).keep("requests");
    const call = watch(three.unlock());
    await pass(ANSWER);
    expect(call.outcome).toBe("UNAVAILABLE");
    await a.letGo();
    await pass(ANSWER);
    expect(heldOn()).toEqual([]);
  },
);

redRow(
  "a waiting call lives through the loss of a majority, and a waiter is woken with a minority away [§2 waiting-survives-outage]",
  async ({ a, red, theirs, pass }) => {
    for (const away of [[0], [0, 1]]) {
      const held = await theirs.lock({ lease: LEASE });
      const call = watch(red.lock({ lease: LEASE }));
      await pass(1_000);
      await a.at(...away).cut();
      await held.unlock();
      await pass(10_000);
      expect(call.state).toBe(away.length > 1 ? "pending" : "resolved");
      await a.at(...away).mend();
      await pass(10_000);
      expect(call.value?.isHeld).toBe(true);
      await call.value?.unlock();
      await pass(ANSWER);
    }
  },
);

redRow(
  "a master away costs one wait for its answer, and nothing piles up for it [§4 red] [F39]",
  async ({ a, red, pass, settle }) => {
    a.at(1).keep("requests");
    const took: MultiHold[] = [];
    for (let i = 0; i < 50; i++) {
      const call = watch(red.lock({ lease: LEASE }));
      await settle();
      if (call.state === "pending") await pass(ANSWER);
      else took.push(call.value as MultiHold);
      await call.value?.unlock();
    }
    expect(took.length).toBeGreaterThan(45);
    expect(a.at(1).onTheirWay).toBeLessThan(20);
    await pass(ANSWER);
    await a.letGo();
    await pass(ANSWER);
  },
);

for (const closed of [0, 2])
  redRow(
    `a hold outlives the close of the client of master ${closed}, and is lost with a second one [§1 close-ends-holds]`,
    async ({ a, red, settle, heldOn }) => {
      const hold = await red.lock();
      await settle();
      await a.clients[closed]?.close({ timeout: 0 });
      await settle();
      expect([hold.isHeld, heldOn().includes(closed)]).toEqual([true, false]);
      await a.clients[1]?.close({ timeout: 0 });
      expect(hold.isHeld).toBe(false);
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
      await hold.unlock();
      await a.close();
      await settle();
      expect(heldOn()).toEqual([]);
    },
  );
