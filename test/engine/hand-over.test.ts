/** A lock that goes from hand to hand in one process: how the queue carries out what the policy decides. */
import { describe, expect } from "vitest";
import type { Handoff } from "../../src/engine/handoff-policy.js";
import type { WaitQueue } from "../../src/engine/wait-queue.js";
import { testIn } from "../support/test-in.js";
import { settled } from "../support/virtual-clock.js";
import { KEPT, POLL_CAP, Scene, type ScriptedCall, testOpenEnd } from "./scene.js";

interface Crowd {
  readonly scene: Scene;
  readonly queue: WaitQueue;
  /** The call that has the lock. */
  readonly holder: ScriptedCall;
  /** The calls that wait, in this order. */
  readonly second: ScriptedCall;
  readonly third: ScriptedCall;
  /** A message arrives on the queue's subscription. */
  readonly message: () => Promise<void>;
}

/** Three calls; the first one got the lock by its try 1 ms ago. */
async function crowd(): Promise<Crowd> {
  const scene = new Scene();
  const holder = await scene.waiting({ name: "holder" });
  const second = await scene.acquire({ name: "second" });
  const third = await scene.acquire({ name: "third" });
  await holder.message();
  await holder.grant();
  await scene.clock.advance(1);
  const queue = scene.engine.queue("queue") as WaitQueue;
  return { scene, queue, holder, second, third, message: () => holder.message() };
}

const test = testIn(crowd, async ({ scene }, body) => {
  await body();
  await scene.close();
});

/** What a lock asks of the queue when it is given back; with `passes` the first waiter takes part in the command. */
function giveBack(queue: WaitQueue, passes: boolean): { to: unknown; handoff: Handoff } | undefined {
  let asked: { to: unknown; handoff: Handoff } | undefined;
  queue.handOver((to, handoff) => {
    asked = { to, handoff };
    return passes;
  });
  return asked;
}

describe("a lock that is given back", () => {
  test("is passed to the first waiter, whose try awaits the giver's command", async (place) => {
    const { scene, queue, second, third } = place;
    expect(giveBack(queue, true)).toEqual({ to: second, handoff: "passLocal" });
    await settled();
    expect([second.tries.length, third.tries.length]).toEqual([1, 0]);
    await second.grant();
    expect(second.outcome).toEqual({ value: "second" });
    expect(giveBack(queue, true)).toEqual({ to: third, handoff: "passLocal" });
    await settled();
    await third.grant();
    expect(giveBack(queue, true)).toBeUndefined();
    await scene.expectNothingLeft();
  });

  test("is offered to others when the turn is over, and goes to the first waiter if nobody takes it", async (place) => {
    const { scene, queue, second, third } = place;
    await scene.clock.advance(50);
    expect(giveBack(queue, true)).toEqual({ to: second, handoff: "offer" });
    await settled();
    await second.grant();
    // A new turn has begun.
    await scene.clock.advance(1);
    expect(giveBack(queue, true)).toEqual({ to: third, handoff: "passLocal" });
  });

  test("is left to others who heard of the offer; the first waiter tries when they have had their turn", async (place) => {
    const { scene, queue, second, message } = place;
    await scene.clock.advance(9);
    // Four hand-overs make a turn.
    for (let i = 0; i < 4; i++) expect(giveBack(queue, false)?.handoff).toBe("passLocal");
    expect(giveBack(queue, true)).toEqual({ to: second, handoff: "offer" });
    await settled();
    await second.refuse(-1, { others: 2 });
    // This is the message of the offer itself.
    await message();
    expect(second.tries).toHaveLength(1);
    expect(await scene.untilNextTry(second)).toBe(40);
  });

  test("is tried for as soon as the last of the others has given it back", async (place) => {
    const { scene, queue, second, message } = place;
    await scene.clock.advance(50);
    giveBack(queue, true);
    await settled();
    await second.refuse(-1, { others: 2 });
    await message();
    await message();
    expect(second.tries).toHaveLength(1);
    await message();
    expect(second.tries).toHaveLength(2);
  });

  test("is tried for at once if the offer came to nothing", async ({ scene, queue, second, message }) => {
    await scene.clock.advance(50);
    giveBack(queue, true);
    await settled();
    await second.refuse(0);
    expect(second.tries).toHaveLength(2);
    await second.refuse();
    // This may be the message of the offer, so no try follows at once; the later try covers another process's release.
    await message();
    expect(second.tries).toHaveLength(2);
    expect(await scene.untilNextTry(second)).toBe(100);
  });

  test("is nobody's turn any more that was let go first, once it is back here", async (place) => {
    const { scene, queue, second, third, message } = place;
    await scene.clock.advance(50);
    giveBack(queue, true);
    await settled();
    await second.refuse(-1, { others: 2 });
    await scene.clock.advance(100);
    await second.grant();
    // One message of the offer, and one of a holder that this queue does not know: it no longer lets others go first.
    await message();
    await message();
    expect(third.tries).toHaveLength(1);
  });

  test("is released after a second: nobody here tries before somebody else could [B39]", async (place) => {
    const { scene, queue, second, message } = place;
    await scene.clock.advance(1_001);
    expect(giveBack(queue, false)).toEqual({ to: second, handoff: "release" });
    queue.released();
    await message();
    expect(second.tries).toHaveLength(0);
    expect(await scene.untilNextTry(second)).toBe(4);
  });

  test("is released after a second: who is told of by that command awaits its answer, and lets others go first", async (place) => {
    const { scene, queue, second, message } = place;
    await scene.clock.advance(1_001);
    expect(giveBack(queue, true)).toEqual({ to: second, handoff: "release" });
    await settled();
    expect(second.tries).toHaveLength(1);
    await second.refuse(-1, { others: 1 });
    await message();
    expect(second.tries).toHaveLength(1);
    expect(await scene.untilNextTry(second)).toBe(4);
  });

  testOpenEnd("is released after a second likewise by a queue that does not listen", async (scene) => {
    const holder = await scene.acquire({ name: "holder" });
    let next = await scene.acquire({ name: "next" });
    const queue = scene.engine.queue("queue") as WaitQueue;
    await holder.grant();
    let isReleased = false;
    const pass = (_call: unknown, handoff: Handoff) => {
      isReleased = handoff === "release";
      return !isReleased;
    };
    for (queue.handOver(pass); !isReleased; queue.handOver(pass)) {
      // No call waits long enough to subscribe.
      await settled();
      await next.grant();
      next = await scene.acquire({ name: "next" });
      await scene.clock.advance(KEPT - 1);
    }
    queue.released();
    await scene.clock.advance(3);
    expect(next.tries).toHaveLength(0);
    await scene.clock.advance(50);
    expect(next.tries).toHaveLength(1);
  });

  test("begins a new stay if it had gone, and who was named by the release takes it by a try of its own", async (place) => {
    const { scene, queue, second, third } = place;
    await scene.clock.advance(1_001);
    expect(giveBack(queue, true)).toEqual({ to: second, handoff: "release" });
    await settled();
    await second.refuse(0);
    await second.grant();
    await scene.clock.advance(9);
    expect(giveBack(queue, true)).toEqual({ to: third, handoff: "passLocal" });
  });

  testOpenEnd("is left to others for as long by a queue that begins to listen with that", async (scene) => {
    const holder = await scene.acquire({ name: "holder" });
    const next = await scene.acquire({ name: "next" });
    const queue = scene.engine.queue("queue") as WaitQueue;
    await holder.grant();
    giveBack(queue, true);
    await settled();
    expect(next.tries).toHaveLength(1);
    await next.refuse(-1, { others: 1 });
    // The server confirms the subscription.
    await next.message();
    expect(next.tries).toHaveLength(1);
    expect(await scene.untilNextTry(next)).toBe(4);
  });

  test("is tried for after a message, if the command could not be shared", async (place) => {
    const { queue, second, message } = place;
    expect(giveBack(queue, false)).toEqual({ to: second, handoff: "passLocal" });
    queue.released();
    await settled();
    expect(second.tries).toHaveLength(0);
    await message();
    expect(second.tries).toHaveLength(1);
  });

  test("is tried for after a while, if an offer could not be shared: one of the others is to have it", async (place) => {
    const { scene, queue, second } = place;
    await scene.clock.advance(50);
    expect(giveBack(queue, false)?.handoff).toBe("offer");
    queue.released();
    expect(second.tries).toHaveLength(0);
    expect(await scene.untilNextTry(second)).toBe(50);
  });

  test("is tried for at a message, if its holder had lost it before the offer: that message is not its own [B169]", async (place) => {
    const { scene, queue, second, message } = place;
    await scene.clock.advance(50);
    expect(giveBack(queue, true)?.handoff).toBe("offer");
    await settled();
    await second.refuse(1_000);
    queue.released(true, true);
    expect(second.tries).toHaveLength(1);
    await message();
    expect(second.tries).toHaveLength(2);
  });

  testOpenEnd("is tried for at once by a queue that does not listen", async (scene) => {
    const holder = await scene.acquire({ name: "holder" });
    const next = await scene.acquire({ name: "next" });
    await holder.grant();
    const queue = scene.engine.queue("queue") as WaitQueue;
    giveBack(queue, false);
    expect(next.tries).toHaveLength(0);
    queue.released();
    await settled();
    expect(next.tries).toHaveLength(1);
  });

  testOpenEnd(
    "is tried for at once by who comes when it was given back, and nobody waited",
    async (scene) => {
      const holder = await scene.acquire({ name: "holder" });
      const next = await scene.acquire({ name: "next" });
      await holder.grant();
      const queue = scene.engine.queue("queue") as WaitQueue;
      giveBack(queue, true);
      await settled();
      await next.grant();
      expect(giveBack(queue, true)).toBeUndefined();
      queue.released();
      const back = await scene.acquire({ name: "back" });
      expect(back.tries).toHaveLength(1);
    },
  );
});

describe("the successor", () => {
  test("that gives up while the command is on its way has the next one try", async (place) => {
    const { scene, queue, second, third } = place;
    giveBack(queue, true);
    await settled();
    await scene.end(second);
    expect(third.tries).toHaveLength(1);
    await second.grant();
    expect(second.told.at(-1)).toBe("not taken");
  });

  test("that gives up before it comes to its try has the next one try", async (place) => {
    const { scene, queue, second, third } = place;
    giveBack(queue, true);
    await scene.end(second);
    expect([second.tries.length, third.tries.length]).toEqual([0, 1]);
  });

  test("that gets no answer goes on waiting", async ({ scene, queue, second, message }) => {
    giveBack(queue, true);
    await settled();
    await second.silence();
    expect(second.outcome).toBe("pending");
    await message();
    expect(second.tries).toHaveLength(2);
    await second.silence();
    await scene.clock.advance(POLL_CAP);
    expect(second.tries).toHaveLength(3);
  });

  test("is the one that begins no stay: after a second from the first arrival the lock is released", async (place) => {
    const { scene, queue, second } = place;
    await scene.clock.advance(990);
    giveBack(queue, true);
    await settled();
    await second.grant();
    await scene.clock.advance(5);
    expect(giveBack(queue, true)?.handoff).not.toBe("release");
    await scene.clock.advance(6);
    expect(giveBack(queue, true)?.handoff).toBe("release");
  });
});

describe("a queue that has become empty", () => {
  test("goes with its subscription after a moment", async ({ scene, queue, holder, second, third }) => {
    for (const call of [second, third]) {
      giveBack(queue, true);
      await settled();
      await call.grant();
    }
    expect(holder.listeners.size).toBe(1);
    await scene.clock.advance(KEPT - 1);
    expect(scene.engine.queue("queue")).toBe(queue);
    await scene.clock.advance(1);
    expect(scene.engine.queue("queue")).toBeUndefined();
    expect(holder.listeners.size).toBe(0);
    await scene.expectNothingLeft();
  });

  test("knows still who has the lock: who comes back waits to be passed it", async (place) => {
    const { scene, queue, second, third } = place;
    for (const call of [second, third]) {
      giveBack(queue, true);
      await settled();
      await call.grant();
    }
    await scene.clock.advance(2);
    const back = await scene.acquire({ name: "back" });
    expect(back.tries).toHaveLength(0);
    expect(giveBack(queue, true)).toMatchObject({ to: back });
    await settled();
    await back.grant();
    await scene.clock.advance(KEPT);
    await scene.expectNothingLeft();
  });

  testOpenEnd("goes at once if its last waiter has given up", async (scene) => {
    const call = await scene.waiting();
    scene.engine.end(call, new Error("enough"));
    expect(call.listeners.size).toBe(0);
    expect(scene.engine.queue("queue")).toBeUndefined();
    await scene.expectNothingLeft();
  });
});
