/** Giving a RedLock back by force: what another party of the process is told whose grant is on its way. */
import { expect, test } from "vitest";
import { script, soon, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { expectNothingLeft, heldOn, joined, LONG, NEVER, Party, useMasters } from "./red-helpers.js";

const masters = await useMasters(3);
const FORCED = { code: "LOCK_LOST", reason: "forced" };

/** The second party's masters `late` answer its tries when they are told to. */
async function twoParties(...late: number[]): Promise<{ one: Party; two: Party } & AsyncDisposable> {
  const one = await Party.of(masters);
  const two = await Party.of(masters, { name: one.name });
  await two.warmUp();
  await expectNothingLeft(two);
  for (const i of late) two.proxy(i).delayReplies(NEVER, script("acquire", two.name));
  const end = () => Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()]);
  return { one, two, [Symbol.asyncDispose]: async () => void (await end()) };
}

test("a call whose grants are on their way when another party uses force gets a hold that is lost [B131]", async () => {
  await using parties = await twoParties(0, 1, 2);
  const { one, two } = parties;
  const call = watch(two.lock.lock({ lease: LONG }));
  await until("the masters have it", async () => (await heldOn(two)).length === 3);
  const forced = watch(one.lock.forceUnlock());
  await until("force has struck", async () => (await heldOn(two)).length === 0);
  for (const proxy of two.proxies) proxy.restore();
  expect(await soon(forced)).toBe(true);
  const hold = await soon(call);
  expect(hold.isHeld).toBe(false);
  expect(hold.signal.reason).toMatchObject(FORCED);
  await expect(hold.unlock()).rejects.toMatchObject(FORCED);
  await expectNothingLeft(two);
});

test("a member that is forced while its late grant is on its way joins the hold as lost [B131]", async () => {
  await using parties = await twoParties(2);
  const { one, two } = parties;
  const hold = await two.lock.lock({ lease: LONG });
  await until("all masters have it", async () => (await heldOn(two)).length === 3);
  const forced = watch(one.client(2).getLock(one.name).forceUnlock());
  await until("force has struck", async () => (await heldOn(two)).join() === "0,1");
  two.proxy(2).restore();
  expect(await soon(forced)).toBe(true);
  await joined(hold);
  expect(hold.members[2]?.signal.reason).toMatchObject(FORCED);
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
  await expectNothingLeft(two);
});

test("a master that has fallen silent since this process took the lock hides no vote of the others [B182]", async () => {
  await using party = await Party.of(masters, { client: { watchdogTimeout: 30_000 } });
  const hold = await joined(await party.lock.lock());
  party.proxy(2).stall();
  expect(await party.lock.forceUnlock()).toBe(true);
  expect(hold.signal.reason).toMatchObject(FORCED);
  party.proxy(2).restore();
  await expect(hold.unlock()).rejects.toMatchObject(FORCED);
  await party.lock.forceUnlock();
  await expectNothingLeft(party);
});
