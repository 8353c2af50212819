/** A call that meets no other call tries once, and makes none of the parts for waiting. */
import { describe, expect, test as plain } from "vitest";
import { WaitLoop } from "../../src/engine/wait-loop.js";
import { COMMAND_TIMEOUT, FOREVER, POLL_CAP, Scene, ScriptedCall, test } from "./scene.js";

describe("a call that is granted by its first try", () => {
  test("makes no queue, no timer and no subscription, and is told of its begin and its end alone", async (scene) => {
    const call = await scene.acquire();
    expect(call.tries).toHaveLength(1);
    expect(call.tries[0]).toMatchObject({ within: COMMAND_TIMEOUT, coWaiters: [] });
    expect(scene.clock.timers).toBe(0);
    expect(call.queued).toBe(false);

    await call.grant();
    expect(call.outcome).toEqual({ value: "a" });
    expect(call.told).toEqual(["begun", "taken"]);
    expect(call.queued).toBe(false);
    expect(call.tries).toHaveLength(1);
  });

  test("has a timer for its wait while it tries, and a listener on its signal", async (scene) => {
    const call = await scene.acquire({}, 5_000, new AbortController().signal);
    expect(scene.clock.timers).toBe(1);
    await call.grant();
  });

  test("tries for as long as a command may take, or as it waits", async (scene) => {
    const patient = await scene.acquire({ queueName: "one" }, COMMAND_TIMEOUT + 1);
    const hasty = await scene.acquire({ queueName: "two" }, COMMAND_TIMEOUT - 1);
    const single = await scene.acquire({ queueName: "three" }, 0);
    expect(patient.tries[0]?.within).toBe(COMMAND_TIMEOUT);
    expect(hasty.tries[0]?.within).toBe(COMMAND_TIMEOUT - 1);
    expect(single.tries[0]?.within).toBe(COMMAND_TIMEOUT);
    await scene.engine.close();
  });

  test("stands beside calls for something else", async (scene) => {
    const one = await scene.acquire({ queueName: "one" });
    const two = await scene.acquire({ queueName: "two" });
    expect([one.queued, two.queued]).toEqual([false, false]);
    await two.grant();
    await one.grant();
  });

  test("leaves nothing that the next one has to look at", async (scene) => {
    for (let i = 0; i < 3; i++) {
      const call = await scene.acquire();
      await call.grant();
      expect(call.queued).toBe(false);
      expect(call.told).toEqual(["begun", "taken"]);
    }
  });

  test("fails as its first try does, also if that had no answer", async (scene) => {
    const broken = await scene.acquire({}, FOREVER);
    const error = new Error("WRONGTYPE");
    await broken.fail(error);
    expect(broken.outcome).toEqual({ error });
    const unanswered = await scene.acquire({}, FOREVER);
    await unanswered.silence();
    expect(unanswered.outcome).toMatchObject({ error: { code: "UNAVAILABLE" } });
    expect(unanswered.told).toEqual(["begun", "not taken"]);
  });

  test("tries again at once if it is told to, without any queue", async (scene) => {
    const call = await scene.acquire();
    await call.refuse(0);
    expect(call.tries).toHaveLength(2);
    await call.refuse(0);
    expect(call.tries).toHaveLength(3);
    expect(call.queued).toBe(false);
    await call.grant();
    expect(call.told).toEqual(["begun", "taken"]);
  });
});

describe("a call that tries once", () => {
  test("is granted, or gets nothing, and never listens", async (scene) => {
    const lucky = await scene.acquire({}, 0);
    await lucky.grant();
    expect(lucky.outcome).toEqual({ value: "a" });
    const late = await scene.acquire({}, 0);
    expect(late.tries[0]?.coWaiters).toBeUndefined();
    await late.refuse(5_000);
    expect(late.outcome).toEqual({ value: undefined });
    expect(late.told).toEqual(["begun", "not taken"]);
  });

  test("tries again at once if it is told to", async (scene) => {
    const call = await scene.acquire({}, 0);
    await call.refuse(0);
    expect(call.tries).toHaveLength(2);
    await call.refuse();
    expect(call.outcome).toEqual({ value: undefined });
  });

  test("goes past those that wait, and moves nobody up", async (scene) => {
    const first = await scene.waiting({ name: "first" });
    const second = await scene.acquire({ name: "second" });
    const single = await scene.acquire({ name: "single" }, 0);
    expect(single.tries).toHaveLength(1);
    await single.grant();
    expect(single.outcome).toEqual({ value: "single" });
    expect(first.tries).toHaveLength(2);
    expect(second.tries).toHaveLength(0);
    await scene.engine.close();
  });

  test("may have a limit of its own", async (scene) => {
    const call = await scene.once(new ScriptedCall(), 70);
    expect(call.tries[0]?.within).toBe(70);
    await call.silence();
    expect(call.outcome).toMatchObject({ error: { code: "UNAVAILABLE" } });
    expect(scene.clock.timers).toBe(0);
  });

  test("ends at that limit even if its try goes on", async (scene) => {
    const call = await scene.once(new ScriptedCall(), 70);
    await scene.clock.advance(69);
    expect(call.outcome).toBe("pending");
    await scene.clock.advance(1);
    expect(call.outcome).toMatchObject({ error: { code: "UNAVAILABLE" } });
    await call.grant();
    expect(call.told.at(-1)).toBe("not taken");
  });

  test("has no timer without a limit", async (scene) => {
    const call = await scene.once(new ScriptedCall(), Number.POSITIVE_INFINITY);
    expect([call.tries[0]?.within, scene.clock.timers]).toEqual([COMMAND_TIMEOUT, 0]);
    await call.grant();
  });

  test("that is a part of a call that has waited is refused by the end of the limit", async (scene) => {
    const call = await scene.once(new ScriptedCall(), 70, true);
    await scene.clock.advance(70);
    expect(call.outcome).toEqual({ value: undefined });
    await call.silence();
  });

  test("can be ended by the call of which it is a part", async (scene) => {
    const call = await scene.once(new ScriptedCall(), 70);
    scene.engine.end(call, new Error("the other part was refused"));
    await scene.clock.advance(0);
    expect(call.outcome).toEqual({ error: new Error("the other part was refused") });
    await call.grant();
    expect(call.told.at(-1)).toBe("not taken");
  });

  test("does not wait for its turn", async (scene) => {
    const call = new ScriptedCall();
    call.turn = false;
    await scene.acquire(call, 0);
    expect(call.outcome).toEqual({ value: undefined });
    expect(call.tries).toHaveLength(0);
  });
});

plain.each([
  ["may wait", false],
  ["tries once", true],
])("a call that %s is kept until it is over, and no longer", async (_, single) => {
  const loop = new WaitLoop({
    clock: new Scene().clock,
    commandTimeout: COMMAND_TIMEOUT,
    unavailable: String,
    pollCap: POLL_CAP,
    random: () => 0,
    stir() {},
    outside: (fn) => fn(),
  });
  const call = new ScriptedCall();
  call.single = single;
  void loop.begin(call);
  expect(loop.calls()).toHaveLength(1);
  await call.grant();
  expect(loop.calls()).toHaveLength(0);
});
