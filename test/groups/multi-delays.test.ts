/** No timer is set to a time that is already over: Node 21 and later warn the user of each such timer. */
import { afterAll, expect, test, vi } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { freshName, script, watch } from "../faults/harness.js";
import { forFile, startProxy, startRedis, until } from "../support/index.js";

const server = await forFile(startRedis());
afterAll(() => vi.unstubAllGlobals());

test("a group whose time ends while a member is refused", async () => {
  const delays: (number | undefined)[] = [];
  const { setTimeout: real } = globalThis;
  vi.stubGlobal("setTimeout", (callback: (...args: unknown[]) => void, ms?: number, ...rest: unknown[]) => {
    delays.push(ms);
    return real(callback, ms, ...rest);
  });
  // A fresh copy of the library, because a loaded copy has kept the platform's timers since its import.
  vi.resetModules();
  const { systemClock } = await import("../../src/base/clock.js");
  const { LockClient, MultiLock } = await import("../../src/index.js");

  let later = 0;
  const clock = { ...systemClock, mono: () => systemClock.mono() + later };
  await using proxy = await startProxy(server);
  await using mine = new LockClient(proxy.connect(), { [INTERNALS]: { clock } } as object);
  await using theirs = new LockClient(server.connect());
  const [first, second] = [`${freshName()}a`, `${freshName()}b`];
  const group = new MultiLock(mine.getLock(first), mine.getLock(second));
  const waiting = new Promise<void>((resolve) => mine.on("waiting", () => resolve()));
  const holdOfSecond = await theirs.getLock(second).lock();
  const call = watch(group.tryLock(60_000));
  // The call has given back the first member and waits for the second. Then it is refused the first one, after its time.
  await waiting;
  await until("the first is free", async () => (await theirs.getLock(first).isLocked()) === false);
  const holdOfFirst = await theirs.getLock(first).lock();
  proxy.onCommand(({ command }) => {
    if (script("acquire", first)(command)) later = 120_000;
  });
  await holdOfSecond.unlock();
  await until("its time is over", () => call.state !== "pending", { timeout: 15_000 });
  expect(call.value).toBeNull();
  expect(later).toBeGreaterThan(0);
  await holdOfFirst.unlock();
  expect(delays.length).toBeGreaterThan(0);
  expect(delays.filter((ms) => ms !== undefined && !(ms >= 0))).toEqual([]);
});
