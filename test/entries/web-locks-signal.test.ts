/** The signal of a request, and what a request that has ended without a grant leaves in memory. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { LockMode } from "../../src/entries/web-locks.js";
import { recordWarnings, until } from "../support/index.js";
import { failureOf, never, type Party, webLocksScene } from "./web-locks-scene.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const { party } = await webLocksScene();
const unreached = () => expect.unreachable("the callback should not run");

test("a request whose signal has aborted, or aborts at once, rejects with its reason and holds nobody up", async () => {
  const { request } = party();
  const before = AbortSignal.abort();
  await expect(request({ signal: before }, unreached)).rejects.toBe(before.reason);
  const reason = "My dog ate it.";
  await expect(request({ signal: AbortSignal.abort(reason) }, unreached)).rejects.toBe(reason);
  const controller = new AbortController();
  const aborted = request({ signal: controller.signal }, unreached);
  controller.abort(reason);
  await expect(aborted).rejects.toBe(reason);
  expect(await request({}, () => "next")).toBe("next");
});

test.each<LockMode>(["exclusive", "shared"])(
  "a signal ends the wait of its request alone, one that is %s",
  async (mode) => {
    const { hold, modes, request } = party();
    const first = await hold();
    const [one, two] = [new AbortController(), new AbortController()];
    const waiting = request({ mode, signal: one.signal }, unreached);
    // Behind other requests of this process, which have not asked Redis either.
    const behind = request({ mode: "shared", signal: two.signal }, unreached);
    const last = request({ mode: "shared" }, () => "last");
    expect(await modes()).toEqual(["e", `${mode[0]}ss`]);
    two.abort(new Error("two"));
    await expect(behind).rejects.toThrow("two");
    one.abort();
    await expect(waiting).rejects.toBe(one.signal.reason);
    expect(await failureOf(waiting)).toBe("AbortError");
    expect(await modes()).toEqual(["e", "s"]);
    await first.release();
    expect(await last).toBe("last");
  },
);

test("a signal that ends the wait of an exclusive request lets the shared ones behind it go", async () => {
  const { hold, modes, request } = party();
  const first = await hold({ mode: "shared" });
  const controller = new AbortController();
  const waiting = request({ signal: controller.signal }, unreached);
  const shared = request({ mode: "shared" }, () => "together");
  expect(await modes()).toEqual(["s", "es"]);
  controller.abort();
  expect(await failureOf(waiting)).toBe("AbortError");
  expect(await shared).toBe("together");
  await first.release();
});

test("a signal that aborts between the grant and the callback rejects, and the lock is given back uncalled [B180]", async () => {
  const { client, modes, name, request } = party();
  const controller = new AbortController();
  client.on("acquired", ({ lockName }) => {
    // By then the request has the lock.
    if (lockName === name) controller.abort("too late");
  });
  const aborted = request({ signal: controller.signal }, unreached);
  const next = request({}, () => "next");
  await expect(aborted).rejects.toBe("too late");
  expect(await next).toBe("next");
  expect(await party(name).isFree()).toBe(true);
  expect(await modes()).toEqual(["", ""]);
});

test("a signal changes nothing once the lock is granted, or when it has been released", async () => {
  const { hold } = party();
  for (const isEarly of [true, false]) {
    const controller = new AbortController();
    const { release } = await hold({ signal: controller.signal });
    if (isEarly) controller.abort();
    const done = release("resolved ok");
    controller.abort();
    expect(await done).toBe("resolved ok");
  }
});

test("a signal of many requests is listened to once, and ends them all", async () => {
  const { hold, modes, request } = party();
  const first = await hold();
  const warnings = recordWarnings();
  const controller = new AbortController();
  const requests = Array.from({ length: 50 }, () => request({ signal: controller.signal }, () => never));
  const ended = Promise.allSettled(requests);
  expect(await modes()).toEqual(["e", "e".repeat(50)]);
  controller.abort();
  expect(new Set((await ended).map(({ status }) => status))).toEqual(new Set(["rejected"]));
  expect(await modes()).toEqual(["e", ""]);
  await first.release();
  expect(warnings).toEqual([]);
});

type Ask = (party: Party, callback: () => void) => Promise<unknown>;
const abortedWhen =
  (isTime: (party: Party) => unknown): Ask =>
  async (asking, callback) => {
    const controller = new AbortController();
    const request = asking.request({ signal: controller.signal }, callback);
    await isTime(asking);
    controller.abort("over");
    await expect(request).rejects.toBe("over");
  };

test.each<[how: string, ask: Ask]>([
  ["is refused", ({ request }, callback) => request({ ifAvailable: true }, callback)],
  ["is aborted on its way to Redis", abortedWhen(() => {})],
  ["is aborted while it waits", abortedWhen(({ client }) => until("it waits", () => client.stats().waiting))],
])("a request that %s keeps no callback, though nothing is ever granted here [B176]", async (_how, ask) => {
  const asking = party();
  const elsewhere = await party(asking.name).hold();
  const callbacks: WeakRef<() => void>[] = [];
  const once = async () => {
    const callback = () => {};
    callbacks.push(new WeakRef(callback));
    await ask(asking, callback);
  };
  for (let n = 0; n < 20; n++) await once();
  await until("all callbacks are garbage", () => {
    collect();
    return callbacks.every((callback) => callback.deref() === undefined);
  });
  await elsewhere.release();
});
