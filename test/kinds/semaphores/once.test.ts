/**
 * Contract section 5: each call of a semaphore or latch counts once, whatever becomes of its command. Every call meets
 * every fault. A call for permits has taken them if it resolves, and none if it fails. Any other call takes effect
 * once, even if its caller gave it up.
 */
import { expect } from "vitest";
import { INTERNALS } from "../../../src/client-options.js";
import type { LockClientOptions } from "../../../src/index.js";
import { NAME, watch } from "../../support/place/index.js";
import { skewed } from "../../support/virtual-clock.js";
import { ABORTABLE, countsOf, OPERATIONS, type Operation, prepare } from "./operations.js";
import { type Numbers, SETTINGS, test } from "./place.js";

type Strike = (place: Numbers, controller: AbortController) => Promise<unknown>;

/** What becomes of the command; afterwards all is answered that will be. */
type Fault = readonly [
  what: string,
  /** How the call ends: as if nothing had happened, or with an error. */
  ends: "well" | "enough" | "UNAVAILABLE",
  way: "requests" | "replies",
  strike: Strike,
  /** A copy of the command reaches the server after others have changed the number. */
  copy?: "late",
];

/** The connection is made anew, and what was not answered is sent again. */
const sentAgain: Strike = ({ a }) => a.reconnect();
/** The connection is made anew, and sends nothing again: the client has to. */
const forgotten: Strike = async ({ a, pass }) => {
  Object.assign(a.connection.options, { autoResendUnfulfilledCommands: false });
  await a.reconnect();
  await pass(500);
};
const arrives: Strike = ({ a }) => a.letGo();
const timesOut: Strike = ({ pass }) => pass(SETTINGS.commandTimeout);
const isAborted: Strike = async ({ settle }, controller) => {
  controller.abort("enough");
  await settle();
};
const lostAgain: Strike = async ({ a }) => {
  const again = a.reconnect();
  a.keep("replies");
  await again;
  await a.reconnect();
};
const inOrder =
  (...strikes: readonly Strike[]): Strike =>
  async (place, controller) => {
    for (const strike of strikes) await strike(place, controller);
  };

const GIVEN_UP = "UNAVAILABLE";

const FAULTS: readonly Fault[] = [
  ["whose reply is lost", "well", "replies", sentAgain],
  ["whose reply is lost twice", "well", "replies", lostAgain],
  ["whose request is lost", "well", "requests", sentAgain],
  ["whose reply is lost for good", "well", "replies", forgotten],
  ["that arrives once more at once", "well", "requests", inOrder(sentAgain, arrives)],
  ["that arrives once more later", "well", "requests", sentAgain, "late"],
  ["that is aborted and arrives", "enough", "requests", inOrder(isAborted, arrives)],
  ["that is aborted and answered", "enough", "replies", inOrder(isAborted, arrives)],
  ["that is aborted, resent and arrives later", "enough", "requests", inOrder(isAborted, sentAgain), "late"],
  ["that is given up and arrives", GIVEN_UP, "requests", inOrder(timesOut, arrives)],
  ["that is given up and answered", GIVEN_UP, "replies", inOrder(timesOut, arrives)],
  ["that is given up, resent and arrives later", GIVEN_UP, "requests", inOrder(timesOut, sentAgain), "late"],
];

async function play(
  place: Numbers,
  { call, does, next }: Operation,
  [, ends, way, strike, copy]: Fault,
): Promise<void> {
  const { a, pass, counts, heard } = place;
  // The first call of a client asks for the server's time, and the fault must strike the call that counts.
  await a.client.getCountDownLatch("first").countDown();
  const id = await prepare(place, { call, does, next });
  const controller = new AbortController();
  a.listen("lost", "error").keep(way);
  const calling = watch(call(place, id, controller.signal));
  await pass(0);
  expect(a.onTheirWay).toBeGreaterThan(0);
  await strike(place, controller);
  await pass(1_000);
  expect(calling.outcome).toEqual(ends === "well" ? does.gives : ends);
  const isTaken = ends === "well" || !does.takes;
  expect(await counts()).toEqual(countsOf(isTaken ? does.to : does.from));
  if (isTaken) {
    expect(new Set(heard)).toEqual(new Set(does.heard));
    const [left] = Object.values(place.left());
    if (does.lease) expect(left).toBeGreaterThan(does.lease - 3_000);
  }
  if (copy) {
    if (isTaken) await next.call(place, calling.value, id);
    await a.letGo();
    await pass(1_000);
    expect(await counts()).toEqual(countsOf(isTaken ? next.to : does.from));
  }
  expect(a.told).toEqual([]);
}

for (const fault of FAULTS) {
  const [what, ends] = fault;
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    if (ends === "enough" && !ABORTABLE.includes(name)) continue;
    const comes = ends !== "well" && operation.does.takes ? "takes nothing" : "counts once";
    test(`${name} ${what} ${comes} [§5 counts-once]`, (place) => play(place, operation, fault));
  }
}

const HOUR = 3_600_000;

for (const [how, before, after] of [
  ["is an hour ahead", HOUR, HOUR],
  ["is an hour behind", -HOUR, -HOUR],
  ["was set forward by an hour", 0, HOUR],
  ["was set back by an hour", 0, -HOUR],
] as const) {
  test(`by a clock that ${how} calls count once, copies not at all when their marker has lapsed, and leases are the server's [§5 counts-once] [B4]`, async (place) => {
    const { server, pass, settle, counts, left } = place;
    let shift: number = before;
    const clock = skewed(server.clock, () => shift);
    const party = place.party({ [INTERNALS]: { clock } } as LockClientOptions);
    const semaphore = party.client.getSemaphore(NAME);
    const permits = party.client.getPermitExpirableSemaphore(NAME);
    // Otherwise the first call is one whose client does not know the server's clock.
    if (before === 0) await semaphore.release(5);
    shift = after;
    party.keep("requests");
    const call = watch(semaphore.release(2));
    await settle();
    await party.reconnect();
    expect(call.state).toBe("resolved");
    const id = await permits.acquire({ lease: 5_000 });
    await permits.updateLeaseTime(id, 100_000);
    await pass(61_000);
    expect(left()).toEqual({ [id]: 39_000 });
    await party.letGo();
    expect(await counts()).toEqual([before === 0 ? "6" : "1", 1]);
    await party.close();
  });
}
