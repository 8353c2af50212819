import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { INTERNALS } from "../../src/client-options.js";
import { pauseAfter } from "../../src/groups/lost-round.js";
import { LockClient, MultiLock } from "../../src/index.js";
import { freshName, script, soon, watch } from "../faults/harness.js";
import { forFile, startProxy, startRedis, until } from "../support/index.js";

const server = await forFile(startRedis());

const longest = (lost: number, took: number) => pauseAfter(lost, took, 1);

test("the more rounds a call has lost, the less long it makes way, but it always does", () => {
  const pauses = [1, 2, 4, 8, 100].map((lost) => longest(lost, 2));
  expect(pauses).toEqual([40, 20, 10, 5, 5]);
});

test("a pause is measured in rounds, of which one without an answer counts as one far away", () => {
  expect([0, 0.5, 20, 3_000].map((took) => longest(8, took))).toEqual([1, 2, 41, 41]);
});

test("it is any time up to that", () => {
  expect([0, 0.25, 0.5].map((chance) => pauseAfter(1, 0.5, chance))).toEqual([0, 4, 8]);
});

test("a call pauses by the rounds that it has lost after its first, and by the time of the last one", async () => {
  let later = 0;
  const pauses: number[] = [];
  const clock = {
    ...systemClock,
    mono: () => systemClock.mono() + later,
    after(ms: number, callback: () => void) {
      pauses.push(ms);
      return systemClock.after(ms, callback);
    },
  };
  await using proxy = await startProxy(server);
  await using mine = new LockClient(proxy.connect(), {
    [INTERNALS]: { clock, random: () => 0.5 },
  } as object);
  await using theirs = new LockClient(server.connect());
  const [a, b] = [`${freshName()}a`, `${freshName()}b`];
  // Each round takes longer than counts.
  const acquires = [a, b].map((name) => script("acquire", name));
  proxy.onCommand(({ command }) => {
    if (acquires.some((isOne) => isOne(command))) later += 100;
  });
  let holdOfA = await theirs.getLock(a).lock();
  const holdOfB = await theirs.getLock(b).lock();
  // Before it is connected, a client begins with the first member alone.
  await mine.getLock(a).isLocked();
  const waiting = new Promise((resolve) => mine.once("waiting", resolve));
  const call = watch(new MultiLock(mine.getLock(a), mine.getLock(b)).lock());
  await waiting;
  await holdOfA.unlock();
  const [afterOne, afterTwo] = [pauseAfter(1, 100, 0.5), pauseAfter(2, 100, 0.5)];
  await until("it has a, is refused b and pauses", () => pauses.includes(afterOne));
  expect(pauses).not.toContain(afterTwo);
  holdOfA = await theirs.getLock(a).lock();
  await holdOfB.unlock();
  await until("it has b, is refused a and pauses", () => pauses.includes(afterTwo));
  await holdOfA.unlock();
  await (await soon(call)).unlock();
});
