/** Several calls that want the same: their places in the queue, which of them try, and which go past others. */
import { describe, expect } from "vitest";
import { settled } from "../support/virtual-clock.js";
import {
  ADVERTISED,
  COUNTED,
  ENOUGH,
  FAIR,
  KEPT,
  PLAIN,
  POLL_CAP,
  type Scene,
  ScriptedCall,
  SHARED,
  testOpenEnd as test,
} from "./scene.js";

describe("calls that want the same", () => {
  test("are granted in the order in which they came; only the first one tries", async (scene) => {
    const calls = [
      await scene.waiting({ name: "1" }),
      await scene.acquire({ name: "2" }),
      await scene.acquire(),
    ];
    const [first, second, third] = calls as [ScriptedCall, ScriptedCall, ScriptedCall];
    expect(calls.map(({ told }) => told)).toEqual(calls.map(() => ["begun", "waiting"]));
    await first.message();
    await first.grant();
    expect([second.tries.length, third.tries.length]).toEqual([0, 0]);
    await first.message();
    expect([second.tries.length, third.tries.length]).toEqual([1, 0]);
    await second.grant();
    await first.message();
    await third.grant();
    expect(calls.map(({ told }) => told.at(-1))).toEqual(["taken", "taken", "taken"]);
    await scene.expectNothingLeft();
  });

  test("stand behind one that came before them, though it has no answer yet", async (scene) => {
    const first = await scene.acquire({ name: "first" });
    const second = await scene.acquire({ name: "second" });
    expect(scene.engine.queue("queue")?.first).toBe(first);
    await first.refuse();
    await first.message();
    expect([first.tries.length, second.tries.length]).toEqual([2, 0]);
  });

  test("look soon, if the holder is of this process, and nobody listens", async (scene) => {
    const first = await scene.acquire({ name: "first" });
    const second = await scene.acquire({ name: "second" });
    await first.grant();
    expect(second.listeners.size).toBe(0);
    expect(second.tries).toHaveLength(0);
    expect(await scene.untilNextTry(second)).toBe(8);
  });

  test("do not look before the lease ends, if somebody listens", async (scene) => {
    const first = await scene.waiting({ name: "first" });
    const second = await scene.acquire({ name: "second" });
    await first.message();
    await first.grant({ lease: 300 });
    expect(second.tries).toHaveLength(0);
    expect(await scene.untilNextTry(second)).toBe(300);
  });

  test("try one after the other at once, where no message and no hand-over tells them", async (scene) => {
    const first = await scene.acquire({ name: "first", traits: COUNTED });
    const second = await scene.acquire({ name: "second", traits: COUNTED });
    await first.grant();
    expect(second.tries).toHaveLength(1);
  });

  test("try once each where the server is to know who is the first", async (scene) => {
    const first = await scene.waiting({ name: "first", traits: ADVERTISED });
    const second = await scene.acquire({ name: "second", traits: ADVERTISED });
    await scene.end(first);
    expect(second.tries).toHaveLength(1);
  });

  test("tell of the next one at once, though others go first, when one goes that had told of itself [B82]", async (scene) => {
    const first = await scene.waiting({ name: "first", traits: ADVERTISED });
    const second = await scene.acquire({ name: "second", traits: ADVERTISED });
    await first.message();
    await first.refuse(-1, { others: 1 });
    await scene.end(first);
    expect(second.tries).toHaveLength(1);
  });

  test("try no more than before when one goes from behind the first", async (scene) => {
    const first = await scene.waiting({ name: "first", traits: ADVERTISED });
    await scene.end(await scene.acquire({ name: "second", traits: ADVERTISED }));
    expect(first.tries).toHaveLength(2);
  });

  test("try when one goes that wanted more than the next", async (scene) => {
    const first = await scene.waiting({ name: "first", traits: COUNTED, permits: 5 });
    const second = await scene.acquire({ name: "second", traits: COUNTED, permits: 4 });
    const third = await scene.acquire({ name: "third", traits: COUNTED, permits: 4 });
    await scene.end(first);
    expect(second.tries).toHaveLength(1);
    await second.refuse();
    await scene.end(second);
    expect(third.tries).toHaveLength(0);
  });
});

describe("a call that has to wait for its turn", () => {
  const away = (name: string) => {
    const call = new ScriptedCall({ name });
    call.turn = false;
    return call;
  };

  test("does not try before, and is in nobody's way", async (scene) => {
    const call = await scene.acquire(away("it"));
    expect(call.told).toEqual(["begun", "withdraw", "waiting"]);
    expect(call.tries).toHaveLength(0);
    const other = await scene.acquire({ name: "other" });
    expect(other.tries).toHaveLength(1);
    await other.grant();
    expect(other.outcome).toEqual({ value: "other" });
  });

  test("tries when it is resumed and has it", async (scene) => {
    const call = await scene.acquire(away("it"));
    call.resume();
    await settled();
    expect(call.tries).toHaveLength(0);
    call.turn = true;
    call.resume();
    await settled();
    expect(call.tries).toHaveLength(1);
    await call.grant();
    await scene.expectNothingLeft();
  });

  test("stands behind those who came meanwhile", async (scene) => {
    const call = await scene.acquire(away("it"));
    const other = await scene.waiting({ name: "other" });
    call.turn = true;
    call.resume();
    await settled();
    expect(call.tries).toHaveLength(0);
    expect(scene.engine.queue("queue")?.first).toBe(other);
  });

  test("leaves its place when it loses its turn, and the next one is the first", async (scene) => {
    const call = await scene.waiting({ name: "it" });
    const other = await scene.acquire({ name: "other" });
    call.turn = false;
    await call.message();
    expect(call.told.at(-1)).toBe("withdraw");
    expect(scene.engine.queue("queue")?.first).toBe(other);
    // The message was for the first call of the queue, whichever that is.
    expect(other.tries).toHaveLength(1);
    await other.grant();
    call.turn = true;
    call.resume();
    await settled();
    // The lock is held by the other call of this process.
    expect(call.tries).toHaveLength(2);
    await call.message();
    expect(call.tries).toHaveLength(3);
    await call.grant();
    await scene.expectNothingLeft();
  });

  test("has the next one try only if there is reason to", async (scene) => {
    const call = await scene.waiting({ name: "it" });
    const other = await scene.acquire({ name: "other" });
    call.turn = false;
    call.resume();
    await settled();
    expect(scene.engine.queue("queue")?.first).toBe(other);
    expect(other.tries).toHaveLength(0);
  });

  test("passes on that it was told to try again", async (scene) => {
    const call = await scene.waiting({ name: "it", ticket: "1", traits: FAIR });
    const other = await scene.acquire({ name: "other", ticket: "2", traits: FAIR });
    await other.refuse();
    await call.message();
    call.turn = false;
    await call.refuse(0);
    expect(other.tries).toHaveLength(2);
  });

  test("starts afresh, if nobody stood behind it: what it knew of the lock and its subscription have gone", async (scene) => {
    const call = await scene.waiting({ name: "it" });
    call.turn = false;
    call.resume();
    await settled();
    expect(call.listeners.size).toBe(0);
    call.turn = true;
    call.resume();
    await settled();
    expect(call.tries).toHaveLength(3);
    const next = await scene.acquire({ name: "next" });
    await call.grant();
    // The queue does not listen, so no message of another process's release will come.
    await scene.clock.advance(KEPT);
    expect(next.tries).toHaveLength(1);
  });

  test("is not put to sleep, if it was resumed before that", async (scene) => {
    const call = away("it");
    call.onWaiting = () => {
      call.turn = true;
      call.resume();
    };
    await scene.acquire(call);
    expect(call.tries).toHaveLength(1);
  });
});

describe("a call whose owner has the lock already", () => {
  const nested = (traits = PLAIN) => {
    const call = new ScriptedCall({ name: "nested", traits });
    call.nested = true;
    return call;
  };

  test("goes past those that wait", async (scene) => {
    const first = await scene.waiting({ name: "first" });
    const call = await scene.acquire(nested());
    expect(call.tries).toHaveLength(1);
    await call.grant();
    expect(scene.engine.queue("queue")?.first).toBe(first);
    expect(first.tries).toHaveLength(2);
  });

  test("tries again by itself when it is refused, and does not listen", async (scene) => {
    const call = await scene.acquire(nested());
    await call.refuse(98);
    expect(call.tries).toHaveLength(1);
    expect(await scene.untilNextTry(call)).toBe(100);
    expect(call.listeners.size).toBe(0);
    await call.grant();
    await scene.expectNothingLeft();
  });

  test("leaves the line when its owner gets the lock by another call", async (scene) => {
    const first = await scene.waiting({ name: "first" });
    const second = await scene.acquire({ name: "second" });
    second.nested = true;
    second.resume();
    await settled();
    expect(second.tries).toHaveLength(1);
    await second.grant();
    expect(second.outcome).toEqual({ value: "second" });
    expect(first.outcome).toBe("pending");
  });

  test("does not keep those that wait from trying in time when it is granted", async (scene) => {
    const first = await scene.waiting({ name: "first" }, 98);
    await (await scene.acquire(nested())).grant();
    await scene.clock.advance(100);
    expect(first.tries).toHaveLength(3);
  });

  test("wakes nobody by what it leaves to others", async (scene) => {
    const first = await scene.waiting({ name: "first", traits: SHARED });
    await (await scene.acquire(nested(SHARED))).grant({ lease: POLL_CAP, remaining: 1 });
    expect(first.tries).toHaveLength(2);
  });

  test("stands in line behind the others when it is told to try again, and its owner has given the lock back", async (scene) => {
    const first = await scene.waiting({ name: "first" });
    const call = await scene.acquire(nested());
    call.nested = false;
    await call.refuse(0);
    expect([first.tries.length, call.tries.length]).toEqual([3, 1]);
  });

  test("stands in line when its owner gives the lock back meanwhile", async (scene) => {
    const call = await scene.acquire(nested());
    call.nested = false;
    await call.refuse();
    expect(scene.engine.queue("queue")?.first).toBe(call);
    expect(call.listeners.size).toBe(1);
  });
});

describe("where the server keeps a queue", () => {
  const fair = (ticket: string) => ({ name: ticket, ticket, traits: FAIR });

  test("each call tries once for its ticket, and is woken by messages of its own", async (scene) => {
    const first = await scene.waiting(fair("1"));
    const second = await scene.acquire(fair("2"));
    expect(second.tries).toHaveLength(1);
    await second.refuse();
    expect(second.listeners.size).toBe(1);
    expect(second.tries).toHaveLength(1);
    await second.message();
    expect([first.tries.length, second.tries.length]).toEqual([2, 2]);
    await second.refuse();
    scene.engine.end(second, ENOUGH);
    scene.engine.end(first, ENOUGH);
    await scene.expectNothingLeft();
  });

  test("a call that stood behind others survives an outage, also in its first try", async (scene) => {
    await scene.waiting(fair("1"));
    const second = await scene.acquire(fair("2"));
    await second.silence();
    expect(second.outcome).toBe("pending");
  });

  test("the refusal of a later one does not keep the first one from trying in time", async (scene) => {
    const first = await scene.waiting(fair("1"), 98);
    await (await scene.acquire(fair("2"))).refuse();
    await scene.clock.advance(100);
    expect(first.tries).toHaveLength(3);
  });

  test("the tries of the first refresh the tickets of all, twice in a poll cap", async (scene) => {
    const first = await scene.waiting(fair("1"));
    for (const ticket of ["2", "3"]) await (await scene.acquire(fair(ticket))).refuse();
    await (await scene.acquire({ name: "none", traits: FAIR })).refuse();
    await scene.clock.advance(POLL_CAP / 2 - 1);
    await first.message();
    expect(first.tries.at(-1)?.coWaiters).toEqual([]);
    await first.refuse();
    await scene.clock.advance(1);
    await first.message();
    expect(first.tries.at(-1)?.coWaiters).toEqual(["2", "3"]);
    await first.refuse();
    await first.message();
    expect(first.tries.at(-1)?.coWaiters).toEqual([]);
  });

  test("calls try themselves whose tickets are lost", async (scene) => {
    const first = await scene.waiting(fair("1"));
    const calls = [];
    for (const ticket of ["2", "3", "4"]) calls.push(await scene.acquire(fair(ticket)));
    for (const call of calls) await call.refuse();
    await first.message();
    await first.refuse(-1, { mustRetry: ["2", "4", "unknown"] });
    expect(calls.map(({ tries }) => tries.length)).toEqual([2, 1, 2]);
  });

  test("a call whose ticket is lost tries, though the answer that tells it is a grant [B170] [B222]", async (scene) => {
    const first = await scene.waiting(fair("1"));
    const [second, third] = [await scene.acquire(fair("2")), await scene.acquire(fair("3"))];
    await second.refuse();
    await third.refuse();
    await first.message();
    await first.grant({ mustRetry: ["3"] });
    expect([second.tries.length, third.tries.length]).toEqual([1, 2]);
  });

  test("a call that is told to try at once does so in its place", async (scene) => {
    const first = await scene.waiting(fair("1"));
    const second = await scene.acquire(fair("2"));
    await second.refuse(0);
    expect(second.tries).toHaveLength(2);
    expect(first.tries).toHaveLength(2);
  });

  test("the next one does not try before its message when the first one has gone", async (scene) => {
    const first = await scene.waiting(fair("1"));
    const second = await scene.acquire(fair("2"));
    await second.refuse();
    scene.engine.end(first, ENOUGH);
    expect(second.tries).toHaveLength(1);
    expect(await scene.untilNextTry(second)).toBe(POLL_CAP);
  });
});

describe("locks that several calls can have at once", () => {
  const queue = async (scene: Scene, wants: readonly number[], traits = COUNTED) => {
    const calls: ScriptedCall[] = [];
    for (const [i, permits] of wants.entries()) {
      const options = { name: `${i}`, permits, traits };
      calls.push(await (i === 0 ? scene.waiting(options) : scene.acquire(options)));
    }
    return calls as [ScriptedCall, ScriptedCall, ScriptedCall, ScriptedCall];
  };
  const triesOf = (calls: readonly ScriptedCall[]) => calls.map(({ tries }) => tries.length);

  test("shared: the grant of one wakes all", async (scene) => {
    const calls = await queue(scene, [1, 1, 1, 1], SHARED);
    await calls[0].message();
    await calls[0].grant();
    expect(triesOf(calls)).toEqual([3, 1, 1, 1]);
    for (const call of calls.slice(1)) await call.grant();
    await scene.expectNothingLeft();
  });

  test("shared: who comes between tries as soon as it is the first", async (scene) => {
    const [first] = await queue(scene, [1], SHARED);
    await first.message();
    const late = await scene.acquire({ name: "late", traits: SHARED });
    expect(late.tries).toHaveLength(0);
    await first.grant();
    expect(late.tries).toHaveLength(1);
  });

  test("counted: as many are woken as what is left goes round for, none of them passed over", async (scene) => {
    const calls = await queue(scene, [1, 2, 3, 1]);
    await calls[0].message();
    await calls[0].grant({ lease: POLL_CAP, remaining: 4 });
    expect(triesOf(calls)).toEqual([3, 1, 0, 0]);
  });

  test("counted: what is promised already is not promised again", async (scene) => {
    const calls = await queue(scene, [1, 1, 1, 1]);
    await calls[0].message();
    await calls[0].grant({ lease: POLL_CAP, remaining: 2 });
    expect(triesOf(calls)).toEqual([3, 1, 1, 0]);
    // The permit that is left is promised to the third call.
    await calls[1].grant({ lease: POLL_CAP, remaining: 1 });
    expect(triesOf(calls)).toEqual([3, 1, 1, 0]);
    await calls[2].grant({ lease: POLL_CAP, remaining: 1 });
    expect(triesOf(calls)).toEqual([3, 1, 1, 1]);
  });

  test("counted: a promise is over when its call has gone, and the next one tries instead", async (scene) => {
    const calls = await queue(scene, [1, 1, 1, 1]);
    await calls[0].message();
    await calls[0].grant({ lease: POLL_CAP, remaining: 1 });
    expect(triesOf(calls)).toEqual([3, 1, 0, 0]);
    await scene.end(calls[1]);
    expect(triesOf(calls)).toEqual([3, 1, 1, 0]);
    await calls[2].grant({ lease: POLL_CAP, remaining: 1 });
    expect(triesOf(calls)).toEqual([3, 1, 1, 1]);
  });

  test("counted: what is promised to a try on its way stays promised, whoever has gone behind it [B22]", async (scene) => {
    const calls = await queue(scene, [1, 1, 1, 1, 1, 1]);
    const [first, , third, fourth] = calls;
    await first.message();
    await first.grant({ lease: POLL_CAP, remaining: 3 });
    expect(triesOf(calls)).toEqual([3, 1, 1, 1, 0, 0]);
    await third.refuse();
    await scene.end(fourth);
    // One of the permits that are left is promised to the second call, whose try is on its way.
    third.hint();
    await settled();
    await third.grant({ lease: POLL_CAP, remaining: 2 });
    expect(triesOf(calls)).toEqual([3, 1, 2, 1, 1, 0]);
  });

  test("counted: a promise is over when its call was refused", async (scene) => {
    const calls = await queue(scene, [1, 1, 1, 1]);
    await calls[0].message();
    await calls[0].grant({ lease: POLL_CAP, remaining: 1 });
    await calls[1].refuse();
    expect(triesOf(calls)).toEqual([3, 1, 0, 0]);
    await calls[0].message();
    await calls[1].grant({ lease: POLL_CAP, remaining: 2 });
    expect(triesOf(calls)).toEqual([3, 2, 1, 1]);
  });
});
