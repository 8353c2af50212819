/** Contract sections 2 and 4: a RedLock that goes from hand to hand inside a process, when masters are silent or have lost it. */
import { expect } from "vitest";
import { watch } from "../../support/place/index.js";
import { ANSWER, LEASE, redRow } from "./masters.js";

redRow(
  "a hand-over goes on without a silent master, whose late answer joins the next hold [§4 red] [§2 woken-by-message]",
  async ({ a, red, settle, heldOn, servers }) => {
    const giver = await red.lock({ lease: LEASE });
    const successor = watch(red.lock({ lease: LEASE }));
    await settle();
    for (const server of servers) server.took();
    a.at(2).keep("replies");
    const given = watch(giver.unlock());
    await settle();
    expect([given.outcome, successor.value?.members.length]).toEqual([undefined, 2]);
    await a.letGo();
    expect(successor.value?.members.length).toBe(3);
    expect(servers.map((server) => server.took().length)).toEqual([1, 1, 1]);
    await successor.value?.unlock();
    await settle();
    expect(heldOn()).toEqual([]);
  },
);

redRow(
  "a hand-over of what a majority of the masters has given to strangers hands over nothing [§4 red] [§2 loss-noticed]",
  async ({ red, occupy, vacate, pass, heldOn }) => {
    const giver = await red.lock({ lease: LEASE });
    const successor = watch(red.lock({ lease: LEASE }));
    await pass(10);
    vacate(0, 1);
    occupy(0, 1);
    const given = watch(giver.unlock());
    await pass(1_000);
    expect([given.outcome, successor.state, heldOn()]).toEqual(["LOCK_LOST", "pending", [0, 1]]);
    vacate(0, 1);
    await pass(1_000);
    expect(successor.value?.isHeld).toBe(true);
    await successor.value?.unlock();
  },
);

redRow(
  "a hand-over whose answers come after the time for a vote is given back, and the call goes on [§4 red] [§2 late-grant]",
  async ({ a, red, pass, heldOn }) => {
    const giver = await red.lock({ lease: LEASE });
    const successor = watch(red.lock({ lease: LEASE }));
    await pass(10);
    a.at(1, 2).keep("replies");
    const given = watch(giver.unlock());
    await pass(ANSWER);
    expect([given.outcome, successor.state]).toEqual(["UNAVAILABLE", "pending"]);
    await a.letGo();
    await pass(ANSWER);
    expect([successor.value?.isHeld, successor.value?.members.length]).toEqual([true, 3]);
    await successor.value?.unlock();
    await pass(10);
    expect(heldOn()).toEqual([]);
  },
);

redRow(
  "a hold that is given back while its owner re-enters it is not handed over, and nobody waits for that in vain [§3 unlock-during-nested] [§4 red]",
  async ({ a, red, pass }) => {
    const owner = a.client.newOwner();
    const outer = await red.lock({ owner });
    const successor = watch(red.lock());
    const last = watch(red.tryLock(500));
    await pass(10);
    const inner = watch(red.lock({ owner }));
    await outer.unlock();
    await pass(1_000);
    expect([inner.value?.isHeld, successor.state, last.outcome]).toEqual([true, "pending", null]);
    await inner.value?.unlock();
    await pass(10);
    expect(successor.value?.isHeld).toBe(true);
    await successor.value?.unlock();
  },
);
