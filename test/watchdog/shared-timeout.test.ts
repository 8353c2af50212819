import { expect, test } from "vitest";
import { SharedTimeout, type Timed } from "../../src/base/shared-timeout.js";
import { VirtualClock } from "../support/virtual-clock.js";

const LIMIT = 3_000;

class Item implements Timed {
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  endsAt = 0;
  readonly expire: () => void;

  constructor(expire: () => void) {
    this.expire = expire;
  }
}

test("items that are started again whenever they expire share one timer for as long as they go on", async () => {
  const clock = new VirtualClock();
  const timeout = new SharedTimeout<Item>(clock, LIMIT, (fn) => fn());
  let expired = 0;
  const items = [0, 1, 2].map(() => {
    const item: Item = new Item(() => {
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
