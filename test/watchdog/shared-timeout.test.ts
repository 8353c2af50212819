import { expect, test } from "vitest";
import { SharedTimeout, TimedCallback } from "../../src/base/shared-timeout.js";
import { VirtualClock } from "../support/virtual-clock.js";

const LIMIT = 3_000;

test("items that are started again whenever they expire share one timer for as long as they go on", async () => {
  const clock = new VirtualClock();
  const timeout = new SharedTimeout<TimedCallback>(clock, LIMIT, (fn) => fn());
  let expired = 0;
  const items = [0, 1, 2].map(() => {
    const item: TimedCallback = new TimedCallback(() => {
      expired++;
      timeout.start(item);
    });
    return item;
  });
  for (const item of items) timeout.start(item);
  await clock.advance(100 * LIMIT);
  expect(expired).toBe(3 * 100);
  expect(clock.timers).toBe(1);
});

test("an item ends in time behind one that began a moment before it and is started again [B53]", async () => {
  const clock = new VirtualClock();
  const timeout = new SharedTimeout<TimedCallback>(clock, LIMIT, (fn) => fn());
  const again: TimedCallback = new TimedCallback(() => timeout.start(again));
  const ended: number[] = [];
  timeout.start(again);
  await clock.advance(1);
  timeout.start(new TimedCallback(() => ended.push(clock.mono())));
  const due = clock.mono() + LIMIT;
  await clock.advance(2 * LIMIT);
  expect(ended).toEqual([due]);
  expect(clock.timers).toBe(1);
});
