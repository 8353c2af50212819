/** Five masters: any two may be away, but not three. */
import { expect, test } from "vitest";
import { failure, nextEvent } from "../contract/helpers.js";
import { type RedisServer, STEADY, until } from "../support/index.js";
import { expectNothingLeft, heldOn, LONG, occupy, Party, takeAll, timed, useMasters } from "./red-helpers.js";

const masters = await useMasters(5);

function master(i: number): RedisServer {
  return masters[i] as RedisServer;
}

test("three votes of five are needed, and enough", async () => {
  await using party = await Party.of(masters);
  await occupy(party, [0, 4], LONG);
  const hold = await party.lock.lock({ lease: LONG });
  expect(hold.members).toHaveLength(3);
  expect(await party.lock.isLocked()).toBe(true);
  expect(await party.lock.tryLock(0, LONG)).toBeNull();
  await hold.unlock();
  await occupy(party, [2], LONG);
  expect(await party.lock.tryLock(0, LONG)).toBeNull();
  await until("its two votes are given back", async () => (await heldOn(party)).join() === "0,2,4");
  expect(await party.lock.forceUnlock()).toBe(true);
  await expectNothingLeft(party);
});

test("with one killed and one stopped it is taken, kept, extended and given back; with one more it is refused [F39]", async () => {
  const client = { watchdogTimeout: STEADY, commandTimeout: 4_000 };
  await using party = await Party.of(masters, { client });
  const hold = await takeAll(party);
  await master(1).kill();
  master(3).pause();
  await nextEvent(party.client(0), "renewed");
  expect(hold.isHeld).toBe(true);
  const { took } = await timed(() => hold.unlock());
  expect(took).toBeLessThan(3_900);
  const next = await until("it is taken", () => party.lock.lock({ lease: LONG }));
  expect(next.members).toHaveLength(3);
  await next.extend(2 * LONG);
  expect(next.remaining).toBeGreaterThan(LONG);
  await next.unlock();
  await master(0).kill();
  expect(await failure(party.lock.tryLock(0, LONG))).toMatchObject({ code: "QUORUM" });
  expect(await failure(party.lock.isLocked())).toMatchObject({ code: "QUORUM" });
  master(3).resume();
  const last = await until("it is taken again", () => party.lock.lock({ lease: LONG }));
  expect(last.members).toHaveLength(3);
  await last.unlock();
});
