/** A call that is refused: it listens, and tries again when there is a reason to. */
import { describe, expect, test as plain } from "vitest";
import { QuorumError } from "../../src/base/errors.js";
import { failure } from "../support/outcome.js";
import {
  COMMAND_TIMEOUT,
  ENOUGH,
  FOREVER,
  KEPT,
  POLL_CAP,
  Scene,
  ScriptedCall,
  testOpenEnd as test,
} from "./scene.js";

describe("a call that is refused", () => {
  test("waits, listens, tries again when that is confirmed, then sleeps until a message", async (scene) => {
    const call = await scene.acquire();
    await call.refuse();
    expect(call.told).toEqual(["begun", "waiting"]);
    expect(call.listeners.size).toBe(1);
    expect(call.tries).toHaveLength(1);

    await call.message();
    expect(call.tries).toHaveLength(2);
    await call.refuse();
    expect(call.tries).toHaveLength(2);
    expect(call.listeners.size).toBe(1);
    expect(scene.clock.timers).toBe(1);

    await call.message();
    expect(call.tries).toHaveLength(3);
    await call.grant();
    expect(call.outcome).toEqual({ value: "a" });
    expect(call.told).toEqual(["begun", "waiting", "taken"]);
    await scene.expectNothingLeft();
  });

  test("stands first in the queue of its name", async (scene) => {
    const call = await scene.acquire();
    await call.refuse();
    expect(scene.engine.queue("queue")?.first).toBe(call);
    expect(scene.engine.queue("queue")?.calls).toBe(1);
    expect(scene.engine.queue("other")).toBeUndefined();
  });

  plain.each([
    ["a moment after the end of the holder's lease", 500, 0, 502],
    ["so that not all come at the same time: a tenth of it later at most", 400, 0.5, 422],
    ["and 50 ms later at most", 5_000, 0.999, 5_052],
    ["no sooner than after 5 ms", 1, 0, 5],
    ["no later than the poll cap", 60_000, 0.5, POLL_CAP],
    ["at the poll cap if the lease has no end", -1, 0.5, POLL_CAP],
  ])("tries again %s", async (_, ttl, random, ms) => {
    const scene = new Scene(() => random);
    const call = await scene.waiting({}, ttl);
    expect(await scene.untilNextTry(call)).toBe(ms);
    await call.refuse(ttl);
    expect(await scene.untilNextTry(call)).toBe(ms);
  });

  plain.each([
    ["right at the end of the holder's lease", 500, 500],
    ["also if that is soon", 1, 1],
    ["no later than the poll cap", 60_000, POLL_CAP],
    ["at the poll cap if the lease has no end", -1, POLL_CAP],
  ])("tries again, where the clock is the server's own, %s", async (_, ttl, ms) => {
    const scene = new Scene(() => 0.5, true);
    const call = await scene.waiting({}, ttl);
    expect(await scene.untilNextTry(call)).toBe(ms);
    await call.refuse(ttl);
    expect(await scene.untilNextTry(call)).toBe(ms);
  });

  test("tries again if a message came while it tried", async (scene) => {
    const call = await scene.waiting();
    await call.message();
    await call.message();
    expect(call.tries).toHaveLength(3);
    await call.refuse();
    expect(call.tries).toHaveLength(4);
    await call.refuse();
    expect(call.tries).toHaveLength(4);
  });

  test("goes on without an answer in a try right behind its first refusal", async (scene) => {
    const call = await scene.acquire();
    scene.engine.queue("queue")?.hint();
    await call.refuse();
    await call.silence();
    expect([call.tries.length, call.outcome]).toEqual([2, "pending"]);
  });

  test("fails without an answer, if all that it was told is to try again", async (scene) => {
    const call = await scene.acquire();
    await scene.acquire({ name: "behind" });
    await call.refuse(0);
    await call.silence();
    expect(call.outcome).toMatchObject({ error: { code: "UNAVAILABLE" } });
  });

  test("lets others go first for as long as it says", async (scene) => {
    const call = await scene.acquire({ backoff: 20 });
    await call.refuse();
    await call.message();
    expect(await scene.untilNextTry(call)).toBe(20);
    await call.refuse();
    await call.message();
    await scene.clock.advance(12);
    // A further message does not postpone the try.
    await call.message();
    expect(await scene.untilNextTry(call)).toBe(8);
  });

  test("tries at once when Redis is back", async (scene) => {
    const call = await scene.waiting();
    await scene.ready();
    expect(call.tries).toHaveLength(3);
  });

  test("tries at once if it is told to, in its place", async (scene) => {
    const call = await scene.waiting();
    await call.message();
    await call.refuse(0);
    expect(call.tries).toHaveLength(4);
    expect(scene.engine.queue("queue")?.first).toBe(call);
  });

  test("says once that it waits", async (scene) => {
    const call = await scene.waiting();
    await scene.clock.advance(3 * POLL_CAP);
    expect(call.told).toEqual(["begun", "waiting"]);
  });

  test("survives an outage: silence is a refusal, and so is the lack of a quorum", async (scene) => {
    const call = await scene.waiting();
    await call.message();
    expect(call.tries[2]?.within).toBe(COMMAND_TIMEOUT);
    await call.silence();
    expect(call.outcome).toBe("pending");
    expect(await scene.untilNextTry(call)).toBe(POLL_CAP);
    await call.fail(new QuorumError("lock", 1, 3, []));
    expect(await scene.untilNextTry(call)).toBe(POLL_CAP);
    await call.grant();
    expect(call.outcome).toEqual({ value: "a" });
  });

  test("has all the time of a command once it waited, however little it had for its first try", async (scene) => {
    const call = await scene.acquire({}, 100);
    expect(call.tries[0]?.within).toBe(100);
    await call.refuse();
    await call.message();
    expect(call.tries[1]?.within).toBe(COMMAND_TIMEOUT);
  });

  test("fails for any other reason", async (scene) => {
    const call = await scene.waiting();
    await call.message();
    const error = new Error("WRONGTYPE");
    await call.fail(error);
    expect(call.outcome).toEqual({ error });
    await scene.expectNothingLeft();
  });

  test("survives from the beginning if what it is a part of has waited", async (scene) => {
    const call = new ScriptedCall();
    const ended = failure(scene.engine.acquire(call, FOREVER, undefined, true));
    await call.silence();
    expect(call.over).toBe(false);
    expect(call.listeners.size).toBe(1);
    await scene.end(call);
    expect(await ended).toBe(ENOUGH);
  });

  test("ends, and all that wait with it, if the server forbids the channel", async (scene) => {
    const calls = [
      await scene.waiting({ name: "a" }),
      await scene.acquire({ name: "b" }),
      await scene.acquire(),
    ];
    for (const listener of calls[0]?.listeners ?? []) listener.refused(new Error("NOPERM no channel"));
    await scene.clock.advance(0);
    for (const { outcome } of calls) {
      expect(outcome).toMatchObject({
        error: { code: "UNSUPPORTED", message: expect.stringContaining("NOPERM no channel") },
      });
    }
    await scene.expectNothingLeft();
  });
});

describe("when the wait is over", () => {
  test("a call that was refused gets nothing", async (scene) => {
    const call = await scene.acquire({}, 1_000);
    await call.refuse();
    await call.message();
    await call.refuse();
    await scene.clock.advance(999);
    expect(call.outcome).toBe("pending");
    await scene.clock.advance(1);
    expect(call.outcome).toEqual({ value: undefined });
    expect(call.told.at(-1)).toBe("not taken");
    await scene.expectNothingLeft();
  });

  test("a call that stood behind others gets nothing", async (scene) => {
    await scene.waiting();
    const call = await scene.acquire({}, 1_000);
    await scene.clock.advance(1_000);
    expect(call.tries).toHaveLength(0);
    expect(call.outcome).toEqual({ value: undefined });
  });

  test("a call that Redis never answered fails", async (scene) => {
    const call = await scene.acquire({}, 1_000);
    await scene.clock.advance(1_000);
    expect(call.outcome).toMatchObject({ error: { code: "UNAVAILABLE" } });
    await scene.expectNothingLeft();
  });

  test("a call fails if Redis does not answer at that moment", async (scene) => {
    const call = await scene.acquire({}, 1_000);
    await call.refuse();
    call.away = true;
    await scene.clock.advance(1_000);
    expect(call.outcome).toMatchObject({ error: { code: "UNAVAILABLE" } });
    await scene.expectNothingLeft();
  });

  test("a try that is granted later changes nothing", async (scene) => {
    const call = await scene.acquire({}, 1_000);
    await call.refuse();
    await call.message();
    await scene.clock.advance(1_000);
    await call.grant();
    expect(call.outcome).toEqual({ value: undefined });
    expect(call.told.filter((word) => word.endsWith("taken"))).toEqual(["not taken"]);
    await scene.expectNothingLeft();
  });
});

// "known": the server may have this ticket. If it has not, the undo of the ticket publishes no message.
test.for([undefined, "known"])(
  "when the last of a queue with ticket %s gives up, the queue behind it tries again [B83]",
  async (ticket, scene) => {
    const { engine } = scene;
    const behind = await scene.waiting({ name: "behind", queueName: "behind" });
    const first = await scene.waiting({ name: "first" });
    const last = await scene.acquire(ticket === undefined ? { name: "last" } : { name: "last", ticket });
    expect(engine.hasWaiters("queue", "behind")).toBe(true);
    const before = behind.tries.length;
    engine.end(first, new Error("enough"));
    await scene.clock.advance(0);
    expect(behind.tries).toHaveLength(before);
    engine.end(last, new Error("enough"));
    await scene.clock.advance(0);
    expect(behind.tries).toHaveLength(before + 1);
  },
);

test("the queue of one that was granted stays for those who come back, if the lock went from hand to hand", async (scene) => {
  const one = await scene.waiting({ name: "one" });
  const two = await scene.acquire({ name: "two" });
  const { clock, engine } = scene;
  const waits = (name: string) => engine.hasWaiters(name, "behind");
  expect([waits("queue"), waits("other")]).toEqual([true, false]);
  await one.message();
  await one.grant();
  // The queue keeps the subscription of the first call.
  await one.message();
  await two.grant();
  expect(waits("queue")).toBe(false);
  await clock.advance(KEPT - 1);
  expect(engine.queue("queue")).toBeDefined();

  const back = await scene.acquire({ name: "back" });
  expect(back.tries).toHaveLength(0);
  await clock.advance(KEPT);
  expect(one.listeners.size).toBe(1);
  await one.message();
  await back.grant();
  // A listener that is told that the call waits may end the call: no timer is left.
  const { timers } = clock;
  const gone = new ScriptedCall({ name: "gone" });
  gone.onWaiting = () => engine.end(gone, new Error("over"));
  await scene.acquire(gone);
  expect([gone.tries.length, clock.timers]).toEqual([0, timers]);
  // A message that comes while the queue is empty makes the next call try at once.
  await one.message();
  const late = await scene.acquire({ name: "late" });
  expect(late.tries).toHaveLength(1);
  engine.end(late, new Error("over"));
  expect(one.listeners.size).toBe(0);
  await scene.expectNothingLeft();
});
