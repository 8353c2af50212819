/** The commands of many calls that are given up while Redis does not answer. What they cost in memory: see leaks. */
import { expect, test } from "vitest";
import { MOST_UNFINISHED } from "../../src/redis/cleanup.js";
import { failure } from "../contract/helpers.js";
import { type Matcher, until } from "../support/index.js";
import { isMarker } from "../support/key-state.js";
import { type Bed, pause, script, soon, useStage, watch } from "./harness.js";

/** The most commands of the clean-up that may be unanswered at the same time. */
const AT_A_TIME = 32;
const COMMAND_TIMEOUT = 150;
/** Long enough that any command is given up several times. */
const LONG = 8 * COMMAND_TIMEOUT;

const stage = await useStage("standalone");

/** Makes calls that are all given up, each for another lock. */
async function giveUp(bed: Bed, count: number): Promise<void> {
  const calls = Array.from({ length: count }, (_, i) => bed.make(`${bed.name}${i}`).tryLock(20));
  for (const call of await Promise.allSettled(calls)) {
    expect(call).toMatchObject({ status: "rejected", reason: { code: "UNAVAILABLE" } });
  }
}

/** The calls have left nothing but markers; `held` other locks stay. */
function untilUndone(bed: Bed, held = 0): Promise<unknown> {
  const isUndone = async () => {
    const keys = Object.keys(await bed.keys());
    return keys.filter((key) => !isMarker(key)).length <= held;
  };
  return until("all calls are undone", isUndone, { timeout: 30_000 });
}

async function markers(bed: Bed): Promise<number> {
  return Object.keys(await bed.keys()).filter(isMarker).length;
}

/** Whether the client refused the call without sending it. */
async function refusal(call: Promise<unknown>): Promise<boolean> {
  return /not sent, since \d+ calls/.test((await failure(call)).message);
}

/** How many commands of the clean-up were sent before the first command that matches. */
function undosBefore(bed: Bed, match: Matcher): number {
  const commands = bed.proxy.commands.map(({ command }) => command);
  const first = commands.findIndex(match);
  if (first < 0) throw new Error("there is no such command");
  return commands.slice(0, first).filter(script("end", bed.name)).length;
}

/** An unlock is the same command. */
const undos = (bed: Bed): number => bed.proxy.count(script("end", bed.name));

test("a call that is given up is undone by one command, however long the outage lasts [B31]", async () => {
  await using bed = await stage.bed({ client: { commandTimeout: COMMAND_TIMEOUT } });
  bed.proxy.clear();
  bed.proxy.stall();
  await giveUp(bed, 100);
  await pause(LONG);
  bed.proxy.restore();
  await untilUndone(bed);
  await until("each has its marker", async () => (await markers(bed)) >= 100);
  // Each loss of the connection may send again what was on its way.
  expect(undos(bed)).toBeLessThanOrEqual(100 + 3 * AT_A_TIME);
  expect(bed.proxy.count(script("take", bed.name))).toBeLessThanOrEqual(200);
});

test("calls for one lock are undone many by one command", async () => {
  await using bed = await stage.bed({ client: { commandTimeout: COMMAND_TIMEOUT } });
  bed.proxy.clear();
  bed.proxy.stall();
  // The waiting calls form a queue, and only the first of them asks Redis.
  const calls = await Promise.allSettled(Array.from({ length: 400 }, () => bed.lock.tryLock()));
  expect(calls.every(({ status }) => status === "rejected")).toBe(true);
  bed.proxy.restore();
  await until("each has its marker", async () => (await markers(bed)) === 400);
  await untilUndone(bed);
  expect(undos(bed)).toBeLessThanOrEqual(10);
});

test("a new call is sent before the clean-up, all but a few commands of it", async () => {
  await using bed = await stage.bed();
  bed.proxy.clear();
  bed.proxy.stall();
  await giveUp(bed, 1_000);
  const call = watch(bed.make(`${bed.name}new`).lock());
  bed.proxy.restore();
  await (await soon(call)).unlock();
  await until("all calls are undone", () => undos(bed) >= 1_000);
  await untilUndone(bed);
  expect(undosBefore(bed, script("take", `${bed.name}new`))).toBeLessThanOrEqual(AT_A_TIME);
});

test("calls beyond a bound are refused at once, and told so; it is over when Redis answers", {
  timeout: 150_000,
}, async () => {
  await using bed = await stage.bed({ client: { commandTimeout: COMMAND_TIMEOUT } });
  bed.proxy.clear();
  bed.proxy.stall();
  await giveUp(bed, MOST_UNFINISHED);
  // Some calls ended before their commands; wait until those commands are given up, too.
  await until("all of them count", () => refusal(bed.lock.tryLock(20)), { every: 0 });
  for (const call of [
    () => bed.lock.tryLock(60_000),
    () => bed.lock.lock(),
    () => bed.lock.isLocked(),
    () => bed.client.getSemaphore(`${bed.name}s`).acquire(),
  ]) {
    expect(await refusal(call())).toBe(true);
  }
  bed.proxy.restore();
  await until("there is room again", () => bed.make(`${bed.name}new`).run(() => true));
  await until("all are undone", () => undos(bed) >= MOST_UNFINISHED, { timeout: 90_000 });
  // A connection that has been silent is made anew, and ioredis sends once more what it has.
  expect(bed.proxy.count(script("take", bed.name))).toBeLessThanOrEqual(2 * MOST_UNFINISHED);
  expect(undos(bed)).toBeLessThanOrEqual(MOST_UNFINISHED + 100);
});
