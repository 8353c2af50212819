import { expect, test } from "vitest";
import { Machine, World } from "./world.js";

test("a timer for the rest of a time fires when that time is over, also by a slow clock", async () => {
  const world = new World();
  await world.runUntil(2_348.825_408_473_255);
  const { clock } = new Machine(world, 0.998_638_464_158_258_3);
  const begun = 1_800.1;
  const time = clock.mono() - begun + 1.2e-13;
  let waits = 0;
  const wait = () => {
    const left = time - (clock.mono() - begun);
    if (left > 0 && ++waits < 100) clock.after(left, wait);
  };
  wait();
  await world.runUntil(2_400);
  expect(waits).toBe(1);
});
