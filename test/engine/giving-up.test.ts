/** Calls that end before they have what they want, at each stage: they leave nothing, and hold no other call up. */
import { describe, expect } from "vitest";
import { settled } from "../support/virtual-clock.js";
import { ENOUGH, FAIR, POLL_CAP, type Scene, ScriptedCall, test } from "./scene.js";

interface Stage {
  readonly title: string;
  /** Brings a call that listens to the signal to this stage. */
  arrange(scene: Scene, signal: AbortSignal): Promise<ScriptedCall>;
  /** The call's last try is still on its way when the call ends. */
  readonly trying?: true;
}

const STAGES: readonly Stage[] = [
  {
    title: "while it tries first",
    arrange: (scene, signal) => scene.acquire({ name: "it" }, 60_000, signal),
    trying: true,
  },
  {
    title: "while its single try is on its way",
    arrange: (scene, signal) => scene.acquire({ name: "it" }, 0, signal),
    trying: true,
  },
  {
    title: "while the only try that it may make is on its way",
    async arrange(scene, signal) {
      const call = await scene.once(new ScriptedCall({ name: "it" }), 60_000);
      // The call of which it is a part listens, and ends it.
      signal.addEventListener("abort", () => scene.engine.end(call, signal.reason), { once: true });
      return call;
    },
    trying: true,
  },
  {
    title: "while its subscription is not confirmed",
    async arrange(scene, signal) {
      const call = await scene.acquire({ name: "it" }, 60_000, signal);
      await call.refuse();
      return call;
    },
  },
  {
    title: "while it tries again",
    async arrange(scene, signal) {
      const call = await scene.waiting({ name: "it" }, -1, signal);
      await call.message();
      return call;
    },
    trying: true,
  },
  {
    title: "while it sleeps",
    arrange: (scene, signal) => scene.waiting({ name: "it" }, -1, signal),
  },
  {
    title: "while it lets others go first",
    async arrange(scene, signal) {
      const call = await scene.waiting({ name: "it", backoff: 20 }, -1, signal);
      await scene.clock.advance(20);
      await call.refuse();
      await call.message();
      return call;
    },
  },
  {
    title: "in line behind others",
    async arrange(scene, signal) {
      await scene.waiting({ name: "first" });
      return scene.acquire({ name: "it" }, 60_000, signal);
    },
  },
  {
    title: "in line before others",
    async arrange(scene, signal) {
      const call = await scene.waiting({ name: "it" }, -1, signal);
      await scene.acquire({ name: "second" });
      return call;
    },
  },
  {
    title: "in line where the server keeps a queue",
    async arrange(scene, signal) {
      await scene.waiting({ name: "first", traits: FAIR, ticket: "1" });
      return scene.waiting({ name: "it", traits: FAIR, ticket: "2" }, -1, signal);
    },
  },
  {
    title: "before its turn, alone",
    async arrange(scene, signal) {
      const call = new ScriptedCall({ name: "it" });
      call.turn = false;
      return scene.acquire(call, 60_000, signal);
    },
  },
  {
    title: "before its turn, beside others",
    async arrange(scene, signal) {
      await scene.waiting({ name: "first" });
      const call = new ScriptedCall({ name: "it" });
      call.turn = false;
      return scene.acquire(call, 60_000, signal);
    },
  },
  {
    title: "after it has lost its turn",
    async arrange(scene, signal) {
      const call = await scene.waiting({ name: "it" }, -1, signal);
      call.turn = false;
      await call.message();
      return call;
    },
  },
  {
    title: "while it re-enters",
    async arrange(scene, signal) {
      const call = new ScriptedCall({ name: "it" });
      call.nested = true;
      return scene.acquire(call, 60_000, signal);
    },
    trying: true,
  },
  {
    title: "while it waits to re-enter",
    async arrange(scene, signal) {
      const call = new ScriptedCall({ name: "it" });
      call.nested = true;
      await scene.acquire(call, 60_000, signal);
      await call.refuse();
      return call;
    },
  },
  {
    title: "while its try to re-enter beside others is on its way",
    async arrange(scene, signal) {
      await scene.waiting({ name: "first" });
      const call = new ScriptedCall({ name: "it" });
      call.nested = true;
      return scene.acquire(call, 60_000, signal);
    },
    trying: true,
  },
];

interface Ending {
  readonly title: string;
  end(scene: Scene, call: ScriptedCall, aborter: AbortController): unknown;
  readonly error: object;
}

const ENDINGS: readonly Ending[] = [
  { title: "is aborted", end: (_scene, _call, aborter) => aborter.abort(ENOUGH), error: ENOUGH },
  { title: "is ended", end: ({ engine }, call) => engine.end(call, ENOUGH), error: ENOUGH },
  { title: "ends with its client", end: ({ engine }) => engine.close(), error: { code: "CLIENT_CLOSED" } },
];

function byTitle<T extends { readonly title: string }>(rows: readonly T[]): (readonly [string, T])[] {
  return rows.map((row) => [row.title, row]);
}

async function endOthers({ calls, engine }: Scene, call: ScriptedCall): Promise<void> {
  for (const other of calls) if (other !== call) engine.end(other, ENOUGH);
  await settled();
}

describe.each(byTitle(ENDINGS))("a call that %s", (_ending, { end, error }) => {
  test.for(byTitle(STAGES))("%s", async ([, { arrange, trying }], scene) => {
    const aborter = new AbortController();
    const call = await arrange(scene, aborter.signal);
    const tries = call.tries.length;
    expect(call.trying).toBe(trying ?? false);

    end(scene, call, aborter);
    await settled();
    expect(call.outcome).toMatchObject({ error });
    expect(call.told.filter((word) => word.endsWith("taken"))).toEqual(["not taken"]);
    expect(call.queued).toBe(false);

    // An answer, a message or a turn that comes now comes too late.
    if (trying) await call.grant();
    await call.message();
    call.resume();
    scene.engine.end(call, new Error("again"));
    await scene.clock.advance(POLL_CAP);
    expect(call.tries).toHaveLength(tries);
    expect(call.outcome).toMatchObject({ error });
    await endOthers(scene, call);
  });
});

describe("a call that ends", () => {
  test("when it is just granted is not taken, if the end is first", async (scene) => {
    const aborter = new AbortController();
    const call = await scene.waiting({}, -1, aborter.signal);
    await call.message();
    const granted = call.grant();
    aborter.abort(ENOUGH);
    await granted;
    expect(call.outcome).toEqual({ error: ENOUGH });
    expect(call.told.at(-1)).toBe("not taken");
  });

  test("when it is just granted is taken, if the grant is first", async (scene) => {
    const aborter = new AbortController();
    const call = await scene.waiting({}, -1, aborter.signal);
    await call.message();
    await call.grant();
    aborter.abort(ENOUGH);
    await settled();
    expect(call.outcome).toEqual({ value: "a" });
    expect(call.told.at(-1)).toBe("taken");
  });

  test.for([
    ["refused", (scene: Scene, call: ScriptedCall) => scene.acquire(call).then(() => call.refuse())],
    [
      "refused as a nested call",
      async (scene: Scene, call: ScriptedCall) => {
        call.nested = true;
        await scene.acquire(call);
        await call.refuse();
      },
    ],
    [
      "behind others",
      async (scene: Scene, call: ScriptedCall) => {
        await scene.waiting({ name: "first" });
        await scene.acquire(call);
      },
    ],
    [
      "before its turn",
      async (scene: Scene, call: ScriptedCall) => {
        call.turn = false;
        await scene.acquire(call);
      },
    ],
  ])("by who is told that it waits leaves nothing: %s", async ([, arrange], scene) => {
    const call = new ScriptedCall({ name: "it" });
    call.onWaiting = () => scene.engine.end(call, ENOUGH);
    await arrange(scene, call);
    expect(call.outcome).toEqual({ error: ENOUGH });
    await endOthers(scene, call);
  });

  test("by who is told that it waits does not stand before the next one", async (scene) => {
    const call = new ScriptedCall({ name: "it" });
    call.onWaiting = () => scene.engine.end(call, ENOUGH);
    await scene.acquire(call);
    await call.refuse();
    const next = await scene.acquire({ name: "next" });
    expect(next.tries).toHaveLength(1);
    await scene.engine.close();
  });

  test("with an error, if its turn can never come", async (scene) => {
    const call = new ScriptedCall();
    call.admitted = () => {
      throw ENOUGH;
    };
    await scene.acquire(call, 60_000, new AbortController().signal);
    expect(call.outcome).toEqual({ error: ENOUGH });
  });

  test("together with a thousand others on one signal", async (scene) => {
    const aborter = new AbortController();
    const first = await scene.waiting({}, -1, aborter.signal);
    const others = Array.from({ length: 1_000 }, () => new ScriptedCall());
    const results = others.map((call) => scene.engine.acquire(call, 60_000, aborter.signal));
    aborter.abort(ENOUGH);
    const outcomes = await Promise.allSettled(results);
    expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
    // These calls left from the end of the queue, so no other call became the first.
    expect(others.filter(({ tries }) => tries.length > 0)).toEqual([]);
    expect(first.tries).toHaveLength(2);
  });
});

describe("the first of a queue", () => {
  test("leaves what it knows of the lock to the next one, who sleeps for as long", async (scene) => {
    const first = await scene.waiting({ name: "first" }, 498);
    const second = await scene.acquire({ name: "second" });
    await scene.clock.advance(100);
    scene.engine.end(first, ENOUGH);
    expect(second.tries).toHaveLength(0);
    expect(await scene.untilNextTry(second)).toBe(400);
    await scene.engine.close();
  });

  test("that leaves with its try on its way has the next one try", async (scene) => {
    const first = await scene.waiting({ name: "first" });
    const second = await scene.acquire({ name: "second" });
    await first.message();
    await scene.end(first);
    expect(second.tries).toHaveLength(1);
    await first.grant();
    await second.refuse();
    expect(second.outcome).toBe("pending");
    await scene.engine.close();
  });

  test("that leaves after a message that it did not try for yet has the next one try", async (scene) => {
    const first = await scene.waiting({ name: "first" });
    const second = await scene.acquire({ name: "second" });
    first.hint();
    await scene.end(first);
    expect(second.tries).toHaveLength(1);
    await scene.engine.close();
  });

  test("leaves its subscription to the next one", async (scene) => {
    const first = await scene.waiting({ name: "first" });
    const second = await scene.acquire({ name: "second" });
    await scene.end(first);
    expect(first.listeners.size).toBe(1);
    await first.message();
    expect(second.tries).toHaveLength(1);
    await second.grant();
    expect(first.listeners.size).toBe(0);
  });
});

describe("an engine that is closed", () => {
  test("resolves when nobody waits", async (scene) => {
    await scene.engine.close();
  });

  test("ends its calls, the last one first, and so tries for none of them", async (scene) => {
    await scene.waiting({ name: "1" });
    await scene.acquire({ name: "2" });
    await scene.acquire({ name: "3" });
    const ended: string[] = [];
    for (const call of scene.calls) {
      const { ended: tell } = call;
      call.ended = (taken) => {
        ended.push(call.name);
        tell.call(call, taken);
      };
    }
    await scene.engine.close();
    expect(ended).toEqual(["3", "2", "1"]);
    expect(scene.calls.map(({ tries }) => tries.length)).toEqual([2, 0, 0]);
  });

  test("ends the calls that joined it, and waits until they have left", async ({ engine }) => {
    const reasons: unknown[] = [];
    const leave = engine.join("group", (error) => reasons.push(error));
    engine.join("gone", (error) => reasons.push(error))();
    let isClosed = false;
    const closed = engine.close().then(() => {
      isClosed = true;
    });
    await settled();
    expect(reasons).toMatchObject([{ code: "CLIENT_CLOSED", lockName: "group" }]);
    expect(isClosed).toBe(false);
    leave();
    await closed;
  });

  test("does not hear any more that Redis is back", async (scene) => {
    await scene.engine.close();
    const call = await scene.waiting();
    await scene.ready();
    expect(call.tries).toHaveLength(2);
    scene.engine.end(call, ENOUGH);
  });
});
