/** Contract section 4: masters of a RedLock that are killed, and come back with their data or without. */
import { expect } from "vitest";
import { type FencedHold, type MultiHold, RedLock } from "../../../src/index.js";
import { Resource } from "../../faults/not-guaranteed/resource.js";
import { failure, NAME, watch } from "../../support/place/index.js";
import { ANSWER, LEASE, redRow } from "./masters.js";

redRow(
  "with one of three masters away it is taken by two, and with two QUORUM, until they are back [§4 red-quorum] [F39]",
  async ({ a, red, pass, settle }) => {
    await a.at(1).cut();
    const first = watch(red.tryLock(0, LEASE));
    await pass(ANSWER);
    expect(first.value?.members).toHaveLength(2);
    await first.value?.unlock();
    await a.at(2).cut();
    const calls = [watch<unknown>(red.tryLock(0, LEASE)), watch<unknown>(red.isLocked())];
    await pass(ANSWER);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["QUORUM", "QUORUM"]);
    await a.at(1, 2).mend();
    await pass(ANSWER);
    const last = await red.lock({ lease: LEASE });
    await settle();
    expect(last.members).toHaveLength(3);
    await last.unlock();
  },
);

for (const [what, lease, isEmpty] of [
  ["with all its data", LEASE, false],
  ["empty, but only after the lease,", 8_000, true],
] as const)
  redRow(
    `a master that comes back ${what} lets nobody else in before [§4 red] [F40]`,
    async ({ a, b, red, theirs, servers, pass, settle }) => {
      await b.at(2).cut();
      await a.at(2).cut();
      const first = watch(red.lock({ lease }));
      await pass(ANSWER);
      expect(first.value?.members).toHaveLength(2);
      await b.at(1).cut();
      if (isEmpty) {
        servers[1]?.delete();
        await pass(lease - ANSWER);
      }
      expect(first.value?.isHeld).toBe(!isEmpty);
      await b.at(1).mend();
      const second = watch(theirs.tryLock(0, LEASE));
      await pass(ANSWER);
      if (isEmpty)
        expect(await failure(first.value?.unlock() as Promise<void>)).toMatchObject({ code: "LOCK_LOST" });
      else expect(second.outcome).toBeNull();
      for (const party of [a, b]) await party.at(2).mend();
      await pass(ANSWER);
      if (isEmpty) expect(second.value?.isHeld).toBe(true);
      await (isEmpty ? second : first).value?.unlock();
      await settle();
    },
  );

redRow(
  "a master that comes back empty within the lease votes again: two hold the lock. The first is told by its next command, and a fence refuses its write [F40]",
  async ({ a, b, servers, settle }) => {
    const [ours, theirs] = [a, b].map(
      ({ clients }) => new RedLock(...clients.map((client) => client.getFencedLock(NAME))),
    ) as [RedLock, RedLock];
    await a.at(2).cut();
    const taken = watch(ours.lock({ lease: LEASE }));
    await settle();
    const first = taken.value as MultiHold;
    servers[1]?.delete();
    const second = await theirs.lock({ lease: LEASE });
    await settle();
    expect([first.isHeld, second.isHeld]).toEqual([true, true]);
    const resource = new Resource();
    const [first0, first1] = first.members as FencedHold[];
    const [second1, second2] = second.members as FencedHold[];
    expect(resource.write("first", first0, first1)).toBe(true);
    expect(resource.write("second", undefined, second1, second2)).toBe(true);
    expect(resource.write("first, late", first0, first1)).toBe(false);
    expect([resource.unfenced, resource.fenced]).toEqual(["first, late", "second"]);
    expect(await failure(first.unlock())).toMatchObject({ code: "LOCK_LOST" });
    expect([first.isHeld, second.isHeld]).toEqual([false, true]);
    await second.unlock();
    await a.at(2).mend();
  },
);
