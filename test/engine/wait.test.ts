import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { onAbort } from "../../src/engine/abort-hub.js";
import { Wait } from "../../src/engine/wait.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const FOREVER = Number.POSITIVE_INFINITY;
const TIME_IS_UP = expect.any(Symbol);

function scene(wait = FOREVER, signal?: AbortSignal) {
  const clock = new VirtualClock(1_000);
  return { clock, wait: new Wait({ clock, wait, signal }) };
}

/** The present state of a promise. */
async function outcome(promise: Promise<unknown>): Promise<unknown> {
  const pending = Symbol("pending");
  const settling = promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  await settled();
  const found = await Promise.race([settling, Promise.resolve(pending)]);
  return found === pending ? "pending" : found;
}

describe("the time of a call", () => {
  test.each([0, FOREVER])("a wait of %d has no timer", (ms) => {
    expect(scene(ms).clock.timers).toBe(0);
  });

  test("when it is over, whatever the call awaits rejects, now and later", async () => {
    const { clock, wait } = scene(100);
    const never = wait.during(new Promise(() => undefined));
    never.catch(() => undefined);
    await clock.advance(99);
    expect([wait.ended, await outcome(never)]).toEqual([false, "pending"]);
    await clock.advance(1);
    expect([wait.ended, await outcome(never)]).toEqual([true, { error: TIME_IS_UP }]);
    expect(await outcome(wait.during(Promise.resolve(1)))).toEqual({ error: TIME_IS_UP });
    expect(await outcome(wait.park())).toEqual({ error: TIME_IS_UP });
    wait.resume();
    expect(await outcome(wait.park())).toEqual({ error: TIME_IS_UP });
  });

  test("a signal ends it with its reason; the first end counts", async () => {
    const controller = new AbortController();
    const { wait } = scene(FOREVER, controller.signal);
    const parked = wait.park();
    controller.abort("enough");
    wait.end("later");
    expect(await outcome(parked)).toEqual({ error: "enough" });
    expect(await outcome(wait.park())).toEqual({ error: "enough" });
  });

  test("it may end before the call awaits anything", async () => {
    const { wait } = scene();
    wait.end("enough");
    expect(await outcome(wait.park())).toEqual({ error: "enough" });
  });

  test("a promise that settles in time passes its result on", async () => {
    const { wait } = scene();
    expect(await outcome(wait.during(Promise.resolve("word")))).toEqual({ value: "word" });
    expect(await outcome(wait.during(Promise.reject("no")))).toEqual({ error: "no" });
  });

  test("afterwards neither timer nor listener is left", () => {
    const { signal } = new AbortController();
    const { clock, wait } = scene(100, signal);
    expect([clock.timers, getEventListeners(signal, "abort").length]).toEqual([1, 1]);
    wait.dispose();
    expect([clock.timers, getEventListeners(signal, "abort").length]).toEqual([0, 0]);
    scene().wait.dispose();
  });
});

describe("a call that is parked", () => {
  test("sleeps until it is resumed, and leaves no timer", async () => {
    const { clock, wait } = scene();
    const parked = wait.park(100);
    expect([await outcome(parked), clock.timers]).toEqual(["pending", 1]);
    wait.resume();
    expect([await outcome(parked), clock.timers]).toEqual([{ value: undefined }, 0]);
    // resume() ended one sleep only.
    expect(await outcome(wait.park(100))).toBe("pending");
  });

  test("sleeps no longer than it wanted to, if that is not for ever", async () => {
    const { clock, wait } = scene();
    const parked = wait.park(100);
    await clock.advance(100);
    expect(await outcome(parked)).toEqual({ value: undefined });
    const forEver = wait.park();
    expect([await outcome(forEver), clock.timers]).toEqual(["pending", 0]);
    wait.resume();
    expect(await outcome(forEver)).toEqual({ value: undefined });
  });

  test("does not sleep at all once, when it was resumed before", async () => {
    const { wait } = scene();
    wait.resume();
    wait.resume();
    expect(await outcome(wait.park())).toEqual({ value: undefined });
    expect(await outcome(wait.park())).toBe("pending");
  });
});

describe("calls that share a signal", () => {
  test("share one listener, which goes with the last of them", () => {
    const { signal } = new AbortController();
    const listeners = () => getEventListeners(signal, "abort").length;
    const [one, two] = [onAbort(signal, () => undefined), onAbort(signal, () => undefined)];
    expect(listeners()).toBe(1);
    one();
    one();
    expect(listeners()).toBe(1);
    two();
    expect(listeners()).toBe(0);
    // Stopping one listener twice does not take away the listeners that others have by now.
    const three = onAbort(signal, () => undefined);
    two();
    expect(listeners()).toBe(1);
    three();
  });

  test("are told from the last to the first", () => {
    const controller = new AbortController();
    const told: number[] = [];
    for (const i of [1, 2, 3]) onAbort(controller.signal, () => told.push(i));
    controller.abort();
    expect(told).toEqual([3, 2, 1]);
  });
});
