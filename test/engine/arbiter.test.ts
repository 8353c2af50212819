import { describe, expect, test } from "vitest";
import { Arbiter, type Contestant } from "../../src/engine/arbiter.js";
import { Wait } from "../../src/engine/wait.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

/** Milliseconds. */
const TURN = 250;
const LONG = 10_000;

function scene() {
  const clock = new VirtualClock(1_000);
  const arbiter = new Arbiter();
  /** A call that has waited since that time. */
  const call = (since: number, ...keys: string[]): Contestant => ({
    keys: new Set(keys),
    since,
    clock,
    wait: new Wait({ clock, wait: 0, signal: undefined }),
  });
  return { clock, arbiter, call };
}

describe("among calls that want several locks", () => {
  test("the one that has lost a round goes before those that want one of its members, and before no others", () => {
    const { arbiter, call } = scene();
    const [first, rival, other] = [call(1, "a", "b"), call(2, "c", "b"), call(3, "c")];
    expect(arbiter.holdsUp(rival)).toBe(false);
    arbiter.lost(first);
    expect([first, rival, other].map((each) => arbiter.holdsUp(each))).toEqual([false, true, false]);
  });

  test("a turn ends in time; then the oldest of those that have lost a round since has the next one", async () => {
    const { clock, arbiter, call } = scene();
    const [young, old, middle] = [call(30, "a"), call(10, "a"), call(20, "a")];
    const has = () => [young, old, middle].filter((each) => !arbiter.holdsUp(each));
    for (const each of [young, middle, old]) arbiter.lost(each);
    expect(has()).toEqual([young]);
    // The call that lost again already has its turn.
    arbiter.lost(young);
    await clock.advance(TURN - 1);
    expect(has()).toEqual([young]);
    await clock.advance(1);
    expect(has()).toEqual([old]);
    await clock.advance(TURN);
    expect(has()).toEqual([middle]);
    await clock.advance(TURN);
    expect(has()).toEqual([young, old, middle]);
    expect(clock.timers).toBe(0);
  });

  test("a call that is over has no turn, and ends the one that it has", async () => {
    const { clock, arbiter, call } = scene();
    const [first, second, third] = [call(1, "a"), call(2, "a"), call(3, "a")];
    for (const each of [first, second, third]) arbiter.lost(each);
    await clock.advance(TURN - 1);
    arbiter.gone(second);
    expect(arbiter.holdsUp(third)).toBe(true);
    arbiter.gone(first);
    expect(arbiter.holdsUp(third)).toBe(false);
    expect(arbiter.holdsUp(first)).toBe(true);
    // This turn has its full length, not the rest of the other call's turn.
    await clock.advance(TURN - 1);
    expect(arbiter.holdsUp(first)).toBe(true);
    arbiter.gone(third);
    expect([arbiter.holdsUp(first), clock.timers]).toEqual([false, 0]);
  });

  test("calls that are held up sleep until the turn changes, or for as long as they asked", async () => {
    const { clock, arbiter, call } = scene();
    const [first, second] = [call(1, "a"), call(2, "a")];
    arbiter.lost(first);
    const woken: string[] = [];
    const sleeping = arbiter.awaitTurn(second, LONG).then(() => woken.push("second"));
    await settled();
    expect(woken).toEqual([]);
    arbiter.gone(first);
    await sleeping;
    expect([woken, clock.timers]).toEqual([["second"], 0]);

    arbiter.lost(first);
    const short = arbiter.awaitTurn(second, 100);
    await clock.advance(100);
    await short;
    // A call that is no longer held up is not woken: its next sleep lasts its whole time.
    arbiter.gone(first);
    let isAwake = false;
    const last = second.wait.park(50).then(() => {
      isAwake = true;
    });
    await settled();
    expect(isAwake).toBe(false);
    await clock.advance(50);
    await last;
  });
});
