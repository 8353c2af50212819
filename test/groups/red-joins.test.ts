/** Members that grant a RedLock after its majority has: they join the hold, or are undone if it has ended by then. */
import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { INTERNALS } from "../../src/client-options.js";
import { failure, recordEvents } from "../contract/helpers.js";
import { script } from "../faults/harness.js";
import { until } from "../support/index.js";
import {
  expectNothingLeft,
  heldOn,
  joined,
  LONG,
  NEVER,
  Party,
  SOON,
  takeAll,
  useMasters,
} from "./red-helpers.js";

const masters = await useMasters(3);

for (const version of [5, 6] as const) {
  /** Master 2 answers tries only after `restore`. */
  const withLateMaster = async (client = {}): Promise<Party> => {
    const party = await Party.of(masters, { version, client });
    await party.warmUp();
    await expectNothingLeft(party);
    party.proxy(2).clear();
    party.proxy(2).delayReplies(NEVER, script("acquire", party.name));
    return party;
  };

  test(`ioredis ${version}: a late grant joins the hold, and is extended and given back with it`, async () => {
    await using party = await withLateMaster();
    const events = recordEvents(party.client(2));
    const hold = await party.lock.lock({ lease: LONG });
    const { ownerId } = hold;
    expect(hold.members).toHaveLength(2);
    await hold.extend(2 * LONG);
    party.proxy(2).restore();
    await joined(hold);
    expect(hold.ownerId).toBe(ownerId);
    expect(hold.members[0]).toBe(hold.members[0]);
    await until("it is extended", () => hold.members.every(({ remaining }) => remaining > 1.5 * LONG));
    await hold.unlock();
    await expectNothingLeft(party);
    const named = (kind: string) =>
      events.filter(({ payload }) => payload.kind === kind).map(({ name }) => name);
    await until("it is told", () => named("lock").join() === "acquired,released");
    expect(named("red")).toEqual(["acquired", "released"]);
  });

  test(`ioredis ${version}: a late grant that is on its way when the hold is given back goes with it`, async () => {
    await using party = await withLateMaster();
    const hold = await party.lock.lock({ lease: LONG });
    await until("all masters have it", async () => (await heldOn(party)).length === 3);
    await hold.unlock();
    // The late grant's answer is still held back.
    await expectNothingLeft(party);
    expect(party.proxy(2).count(script("undo", party.name))).toBe(1);
    party.proxy(2).restore();
    await (await takeAll(party, LONG)).unlock();
    await expectNothingLeft(party);
    expect(hold.members).toHaveLength(2);
  });

  test(`ioredis ${version}: a call for the owner of a hold goes behind the late try, and re-enters its grant`, async () => {
    await using party = await withLateMaster();
    const hold = await party.lock.lock({ lease: LONG });
    // A hold is an owner for the options, as in the contract.
    const nested = party
      .client(2)
      .getLock(party.name)
      .lock({ lease: LONG, owner: hold as never });
    await until("all masters have it", async () => (await heldOn(party)).length === 3);
    party.proxy(2).restore();
    const inner = await nested;
    await joined(hold);
    expect(inner.ownerId).toBe(hold.members[2]?.ownerId);
    expect(party.proxy(2).count(script("acquire", party.name))).toBe(1);
    expect(await masters[2]?.call("HVALS", party.name)).toEqual(["2"]);
    await hold.unlock();
    await until("the nested hold is left", async () => (await heldOn(party)).join() === "2");
    await inner.unlock();
    await expectNothingLeft(party);
  });

  test(`ioredis ${version}: a try that reaches its master after the hold has ended leaves nothing there`, async () => {
    await using party = await Party.of(masters, { version });
    await party.warmUp();
    const before = party.asked[2] ?? 0;
    party.proxy(2).stall();
    const hold = await party.lock.lock({ lease: LONG });
    await hold.unlock();
    party.proxy(2).restore();
    await until("it is there", () => (party.asked[2] ?? 0) > before, { timeout: SOON });
    await party.redises[2]?.ping();
    await expectNothingLeft(party);
  });

  test(`ioredis ${version}: a late grant after the hold has expired is no part of it, and is undone`, async () => {
    let leap = 0;
    const clock = { ...systemClock, wall: () => Date.now() + leap };
    await using party = await withLateMaster({ [INTERNALS]: { clock } });
    const hold = await party.lock.lock({ lease: LONG });
    await until("all masters have it", async () => (await heldOn(party)).length === 3);
    leap = 2 * LONG;
    expect(hold.isHeld).toBe(false);
    party.proxy(2).restore();
    await until("it is undone", async () => !(await heldOn(party)).includes(2));
    expect(hold.members).toHaveLength(2);
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await expectNothingLeft(party);
  });

  test(`ioredis ${version}: a majority that late grants make after the call was given up is nobody's`, async () => {
    await using party = await withLateMaster();
    party.proxy(1).delayReplies(NEVER, script("acquire", party.name));
    const ending = new AbortController();
    const call = party.lock.lock({ lease: LONG, signal: ending.signal });
    await until("all masters have it", async () => (await heldOn(party)).length === 3);
    ending.abort(new Error("given up"));
    await expect(call).rejects.toThrow("given up");
    await expectNothingLeft(party);
    for (const i of [1, 2]) party.proxy(i).restore();
    await (await takeAll(party, LONG)).unlock();
    await expectNothingLeft(party);
  });

  test(`ioredis ${version}: a member that refuses late is told to nobody; one that confirms late counts`, async () => {
    await using party = await withLateMaster();
    const hold = await party.lock.lock({ lease: LONG });
    await until("all masters have it", async () => (await heldOn(party)).length === 3);
    party.proxy(0).stall();
    party.proxy(2).restore();
    // Two of three masters must confirm, and one of those two is the master whose confirmation is on its way.
    await hold.unlock();
    party.proxy(0).restore();
    await expectNothingLeft(party);
  });
}
