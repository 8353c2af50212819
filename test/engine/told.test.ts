/** What the engine is told besides tries and messages, and what it reports. */
import { describe, expect } from "vitest";
import { Acquisition } from "../../src/engine/acquisition.js";
import { settled } from "../support/virtual-clock.js";
import { COUNTED, FAIR, FOREVER, PLAIN, POLL_CAP, ScriptedCall, test } from "./scene.js";

/** A call that can be told that Redis gave a late answer. */
class Answerable extends ScriptedCall {
  readonly awaiting: Set<() => void> = new Set();

  override whenAnswered(callback: () => void): () => void {
    this.awaiting.add(callback);
    return () => this.awaiting.delete(callback);
  }
}

describe("a call that had no answer in time", () => {
  test("tries again when there is one after all, and asks for that once", async (scene) => {
    const call = (await scene.waiting(new Answerable())) as Answerable;
    for (const _ of [1, 2]) {
      await call.message();
      const tries = call.tries.length;
      await call.silence();
      expect([call.tries.length, call.awaiting.size]).toEqual([tries, 1]);
    }
    const tries = call.tries.length;
    for (const answered of call.awaiting) answered();
    await settled();
    expect(call.tries).toHaveLength(tries + 1);
    await call.grant();
    expect([call.outcome, call.awaiting.size]).toEqual([{ value: "a" }, 0]);
  });

  test("and is over by then asks for nothing", async (scene) => {
    const controller = new AbortController();
    const call = (await scene.waiting(new Answerable(), -1, controller.signal)) as Answerable;
    await call.message();
    controller.abort("enough");
    await call.silence();
    expect([call.outcome, call.awaiting.size]).toEqual([{ error: "enough" }, 0]);
  });
});

describe("the server forbids the channel of a waiter that listens for itself", () => {
  test.for<[unknown, string]>([
    [new Error("no permissions"), "no permissions"],
    ["no error at all", "unknown error"],
  ])("it ends (%s), and the others stay", async ([reason, message], scene) => {
    const first = await scene.waiting({ name: "a", traits: FAIR, ticket: "a" });
    const second = await scene.waiting({ name: "b", traits: FAIR, ticket: "b" });
    for (const listener of [...second.listeners]) listener.refused(reason);
    await first.message();
    expect(second.outcome).toMatchObject({
      error: { code: "UNSUPPORTED", message: expect.stringContaining(message) },
    });
    expect(first.outcome).toBe("pending");
    await first.grant();
  });
});

describe("in the queue of a server", () => {
  test("a call that is not the first refreshes no ticket", async (scene) => {
    const first = await scene.waiting({ name: "a", traits: FAIR, ticket: "a" });
    await scene.clock.advance(POLL_CAP - 1);
    const second = await scene.acquire({ name: "b", traits: FAIR, ticket: "b" });
    expect(second.tries.map(({ coWaiters }) => coWaiters)).toEqual([[]]);
    await second.grant();
    await first.message();
    await first.grant();
  });

  test("elsewhere no ticket is refreshed", async (scene) => {
    const first = await scene.waiting({ name: "a", traits: COUNTED, ticket: "a" });
    const second = await scene.acquire({ name: "b", traits: COUNTED, ticket: "b" });
    await scene.clock.advance(POLL_CAP);
    expect(first.tries.flatMap(({ coWaiters }) => coWaiters)).toEqual([]);
    for (const call of [first, second]) {
      await call.message();
      await call.grant();
    }
  });
});

test("a call wants one permit, and is always due, unless it says otherwise", () => {
  class Plain extends Acquisition<string> {
    override readonly lockName = "lock";
    override readonly queueName = "queue";
    override readonly traits = PLAIN;
    override readonly away = false;
    override attempt = () => Promise.reject(new Error("unused"));
    override listen = () => () => undefined;
    override waiting() {}
    override ended() {}
  }
  const call = new Plain();
  expect([call.permits, call.ticket, call.backoff]).toEqual([1, undefined, 0]);
  expect([call.admitted(), call.reenters(), call.succeed("job", 1)]).toEqual([true, false, undefined]);
});

describe("the engine", () => {
  test("lets a call try once past those that wait", async (scene) => {
    const first = await scene.waiting();
    const call = await scene.once(new ScriptedCall({ name: "b" }), 500);
    expect(call.tries).toHaveLength(1);
    await call.refuse();
    expect([call.outcome, call.tries.length]).toEqual([{ value: undefined }, 1]);
    await first.message();
    await first.grant();
  });

  test("ends a call once", async (scene) => {
    const call = await scene.waiting();
    for (const reason of ["first", "second"]) scene.engine.end(call, reason);
    await call.message();
    expect(call.outcome).toEqual({ error: "first" });
    expect(call.told.filter((word) => word === "not taken")).toHaveLength(1);
  });

  test("knows the calls that wait, and not those whose first try is on its way", async (scene) => {
    const call = await scene.acquire();
    const once = await scene.acquire(new ScriptedCall({ name: "b", queueName: "other" }), 0);
    expect(scene.engine.waiting).toEqual([]);
    await call.refuse();
    expect(scene.engine.waiting).toEqual([call]);
    await once.grant();
    await call.message();
    await call.grant();
    expect(scene.engine.waiting).toEqual([]);
  });

  test("needs no timer for what does not end by itself", async (scene) => {
    await scene.acquire({}, 0);
    expect(scene.clock.timers).toBe(0);
    const call = new ScriptedCall({ name: "b", queueName: "other", traits: PLAIN });
    call.turn = false;
    await scene.acquire(call, FOREVER);
    expect(scene.clock.timers).toBe(0);
    await scene.engine.close();
  });

  test("gives calls that try in rounds for the same thing one back-off, while there are any", ({
    engine,
  }) => {
    const first = engine.joinRounds("a");
    expect(engine.joinRounds("a")).toBe(first);
    expect(engine.joinRounds("b")).not.toBe(first);
    engine.leaveRounds("a");
    expect(engine.joinRounds("a")).toBe(first);
    engine.leaveRounds("a");
    engine.leaveRounds("a");
    expect(engine.joinRounds("a")).not.toBe(first);
    engine.leaveRounds("nobody");
  });

  test("ends those that joined it from the last to the first", ({ engine }) => {
    const ended: string[] = [];
    const leave = ["a", "b", "c"].map((name) => engine.join(name, () => ended.push(name)));
    void engine.close();
    expect(ended).toEqual(["c", "b", "a"]);
    for (const each of leave) each();
  });

  test("may lose those that joined it before it is closed", async ({ engine }) => {
    engine.join("a", () => undefined)();
    await engine.close();
  });
});
