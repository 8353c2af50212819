/** Contract sections 1 and 5: the run of a semaphore, the events of all kinds, and what the close of a client ends. */
import { expect } from "vitest";
import { deferred, failure, NAME, watch } from "../../support/place/index.js";
import { PLAIN, SHORT } from "./operations.js";
import { ID, LEASES, NEVER, type Numbers, test, UNKNOWN } from "./place.js";

const mine = new Error("mine");
const CLOSED = { code: "CLIENT_CLOSED", lockName: NAME };

/** A run that has begun, and ends when the test says so. */
async function running({ semaphore, settle }: Numbers, permits = 1, signal?: AbortSignal) {
  const end = deferred<string>();
  const run = watch(semaphore().run(() => end.promise, { permits, signal }));
  await settle();
  return { run, end: end.resolve };
}

test("a run takes its permits by one command, gives them back by one, and has nothing to do with owners [§5 semaphore]", async (place) => {
  const { a, semaphore, server, counts } = place;
  await semaphore().trySetPermits(5);
  const before = server.ran.length;
  expect(await semaphore().run(async () => (await counts())[0], { permits: 3 })).toBe("2");
  expect(server.ran).toHaveLength(before + 2);
  // A run inside a run, and a call of the same scope, take more permits.
  const inside = () => semaphore().run(() => semaphore().tryAcquire(2));
  expect(await a.client.scope(() => semaphore().run(inside, { permits: 3 }))).toBe(false);
  expect(await counts()).toEqual(["5", 0]);
});

test("fn's error wins, and the permits are back, also if their release is not answered in time [§5 semaphore]", async (place) => {
  const { a, semaphore, counts, pass } = place;
  await semaphore().trySetPermits(2);
  a.listen("error");
  for (const fn of [
    () => Promise.reject(mine),
    (): never => {
      throw mine;
    },
  ])
    expect(await failure(semaphore().run(fn, { permits: 2 }))).toBe(mine);
  expect([await counts(), a.told]).toEqual([["2", 0], []]);
  const run = watch(
    semaphore().run(() => {
      a.keep("requests");
      throw mine;
    }),
  );
  await pass(1_000);
  expect([run.error, a.heard("error")]).toMatchObject([
    mine,
    [{ lockName: NAME, cause: { code: "UNAVAILABLE" } }],
  ]);
  await a.letGo();
  expect(await counts()).toEqual(["2", 0]);
});

test("a run of a permit with a lease gives it back, fn's error wins, and a permit that was lost is told [§5 semaphore]", async (place) => {
  const { a, permits, counts, pass, server } = place;
  await permits().trySetPermits(1);
  expect(await permits().run(async (id) => [id, (await counts())[1]])).toEqual([ID, 1]);
  expect(await failure(permits().run(() => Promise.reject(mine)))).toBe(mine);
  expect(await counts()).toEqual(["1", 0]);
  const late = watch(permits().run(() => permits().run(() => expect.unreachable(), { wait: 500 })));
  await pass(500);
  expect(late.error).toMatchObject({ code: "WAIT_TIMEOUT", waited: 500 });
  const wiped = async () => server.delete(LEASES);
  await permits().addPermits(1);
  // Its lease ends, its key is deleted, and the client is closed.
  const lost = [
    { options: { lease: 1_000 }, end: () => pass(2_000), reason: "expired" },
    { options: {}, end: () => wiped().then(() => pass(9_000)), reason: "expired" },
    { options: {}, end: () => a.client.close({ timeout: 0 }), reason: "closed" },
  ];
  for (const { options, end, reason } of lost) {
    const inside = deferred<string>();
    const run = watch(permits().run(() => inside.promise, options));
    await place.settle();
    await end();
    inside.resolve("done");
    await place.settle();
    expect(run.error).toMatchObject({ code: "LOCK_LOST", reason, result: "done" });
  }
});

test("a run without permits within its wait rejects WAIT_TIMEOUT, which names the cure if nobody has set them, and a signal ends nothing but its wait [§5 semaphore] [B289]", async (place) => {
  const { semaphore, permits, pass, counts, settle } = place;
  const never = () => expect.unreachable("fn was called");
  const late = [semaphore(), permits()].map((of) => watch(of.run(never, { wait: 7_000 })));
  await pass(7_000);
  const message = expect.stringContaining("trySetPermits()");
  for (const { error } of late)
    expect(error).toMatchObject({ code: "WAIT_TIMEOUT", lockName: NAME, waited: 7_000, message });
  expect(await failure(semaphore().run(never, { wait: 0 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
  await semaphore().trySetPermits(1);
  const other = new AbortController();
  const { run, end } = await running(place, 1, other.signal);
  const controller = new AbortController();
  const waiting = watch(semaphore().run(never, { signal: controller.signal }));
  await settle();
  controller.abort("enough");
  await settle();
  expect(waiting.outcome).toBe("enough");
  other.abort("enough");
  end("done");
  await settle();
  expect([run.outcome, await counts()]).toEqual(["done", ["1", 0]]);
});

test("a run whose release is refused is told by `error`, and the data is left alone [§6 wrong-data]", async (place) => {
  const { a, semaphore, call } = place;
  await semaphore().trySetPermits(1);
  a.listen("error");
  const run = semaphore().run(async () => {
    await call("DEL", NAME);
    await call("RPUSH", NAME, "theirs");
    return "done";
  });
  expect(await run).toBe("done");
  expect(a.heard("error")).toMatchObject([{ lockName: NAME, cause: { code: "WRONG_DATA" } }]);
  expect(await call("LRANGE", NAME, 0, -1)).toEqual(["theirs"]);
});

test("events tell of each kind what was taken and given back, who was refused, and who waits for how long [§1 events]", async (place) => {
  const { a, semaphore, permits, latch, pass, call } = place;
  a.listen();
  const told = () => a.told.splice(0).map(({ name, event }) => ({ name, ...event }));
  const of = (kind: string, name: string, more: object = {}) => ({ name, lockName: NAME, kind, ...more });
  await semaphore().trySetPermits(2);
  await semaphore().acquire(2);
  expect(await semaphore().tryAcquire()).toBe(false);
  const waiting = [watch(semaphore().acquire()), watch(semaphore().tryAcquire(1, 5_000))];
  await pass(80);
  await semaphore(1).release(2);
  await pass(0);
  await semaphore().release(2);
  const waited = of("semaphore", "acquired", { waited: 80 });
  expect(told()).toMatchObject([
    of("semaphore", "acquired", { waited: 0 }),
    of("semaphore", "rejected"),
    ...[of("semaphore", "waiting"), of("semaphore", "waiting"), waited, waited, of("semaphore", "released")],
  ]);
  await call("SET", NAME, 2);
  const ids = [await permits().acquire(), await permits().acquire({ lease: 60_000 })];
  const next = watch(permits().acquire({ lease: 60_000 }));
  await pass(80);
  for (const permitId of ids) await permits().release(permitId);
  const events = told();
  expect(events).toHaveLength(6);
  for (const event of [
    ...ids.map((permitId) => of("permits", "acquired", { permitId, waited: 0 })),
    of("permits", "waiting"),
    of("permits", "released", { permitId: ids[0], held: 80 }),
    of("permits", "acquired", { permitId: next.value, waited: 80 }),
    of("permits", "released", { permitId: ids[1] }),
  ])
    expect(events).toContainEqual(expect.objectContaining(event));
  await call("SET", NAME, 1);
  const gate = watch(latch().await());
  await pass(80);
  await latch().countDown();
  await pass(0);
  expect([gate.value, told()]).toMatchObject([true, [of("latch", "waiting")]]);
  expect(waiting.map(({ state }) => state)).toEqual(["resolved", "resolved"]);
});

test("a closed client refuses each call, and asks nobody [§1 close] [B120]", async (place) => {
  const { a, permits, server } = place;
  await a.client.close();
  const sent = server.ran.length;
  for (const [name, call] of [...PLAIN, ...SHORT])
    expect(await failure(call(place)), name).toMatchObject(CLOSED);
  for (const id of ["x", UNKNOWN])
    for (const call of [permits().release(id), permits().tryRelease(id)])
      expect(await failure(call)).toMatchObject(CLOSED);
  expect(server.ran).toHaveLength(sent);
});

test("a close ends those who wait at once, gives back a grant on its way, and they take nothing later [§1 close]", async (place) => {
  const { a, semaphore, permits, latch, settle, call, counts, listeners } = place;
  await call("SET", NAME, 1);
  const gates = [watch(latch().await()), watch(latch().await(NEVER))];
  await settle();
  a.keep("replies");
  const granted = [watch(semaphore().acquire()), watch(permits().acquire())];
  await settle();
  const calls = [...gates, ...granted];
  const closing = watch(a.client.close({ timeout: 5_000 }));
  await settle();
  for (const { error } of calls) expect(error).toMatchObject(CLOSED);
  await a.letGo();
  await settle();
  expect([closing.state, await counts(), listeners()]).toEqual(["resolved", ["1", 0], 0]);
});

test("a close gives kept permits and runs time to end, renews them till then, and is over as soon as they are [§1 close]", async (place) => {
  const { a, permits, pass, settle, counts } = place;
  await permits().trySetPermits(4);
  const ids = [await permits().acquire(), await permits().acquire()];
  const { run, end } = await running(place);
  a.listen("lost", "renewed");
  const closing = watch(a.client.close({ timeout: 60_000 }));
  await pass(20_000);
  expect([closing.state, await counts(), a.heard("renewed").length]).toEqual(["pending", ["1", 2], 12]);
  await permits().release(ids[0] ?? "");
  expect(await permits().tryRelease(ids[1] ?? "")).toBe(true);
  end("done");
  await settle();
  expect([run.value, closing.state, a.heard("lost")]).toEqual(["done", "resolved", []]);
  expect(await counts()).toEqual(["4", 0]);
});

for (const timeout of [0, 300]) {
  test(`a close tells kept permits and runs as lost after ${timeout} ms, gives them back, and others get them [§1 close-ends-holds]`, async (place) => {
    const { a, permits, pass, counts } = place;
    await permits().trySetPermits(3);
    const ids = [await permits().acquire(), await permits().acquire()];
    const { run, end } = await running(place);
    const next = watch(permits(1).acquire({ lease: NEVER }));
    a.listen("lost", "released");
    const closing = watch(a.client.close({ timeout }));
    await pass(timeout - 1);
    if (timeout > 0) expect(a.told).toEqual([]);
    await pass(1);
    const lost = { lockName: NAME, reason: "closed" };
    expect(a.heard("lost")).toHaveLength(3);
    expect(a.heard("lost")).toEqual(
      expect.arrayContaining(ids.map((permitId) => expect.objectContaining({ ...lost, permitId }))),
    );
    end("done");
    await pass(0);
    expect(run.error).toMatchObject({ code: "LOCK_LOST", reason: "closed", result: "done" });
    expect([closing.state, next.value, await counts()]).toEqual(["resolved", ID, ["2", 1]]);
    // The user may give them back later: nothing is sent, and nothing fails.
    await permits().release(ids[0] ?? "");
    expect([await permits().tryRelease(ids[1] ?? ""), await counts()]).toEqual([true, ["2", 1]]);
    expect(a.heard("released")).toEqual([]);
  });
}

test("a close leaves permits with a lease and those of a plain semaphore alone, and waits for none [§1 close]", async (place) => {
  const { a, permits, semaphore, soon, left } = place;
  await permits().trySetPermits(4);
  const leased = await permits().acquire({ lease: 60_000 });
  const updated = await permits().acquire();
  await permits().updateLeaseTime(updated, 60_000);
  await semaphore().acquire();
  a.listen("lost");
  await soon(a.client.close({ timeout: 60_000 }));
  expect([new Set(Object.keys(left())), (await place.counts())[0], a.told]).toEqual([
    new Set([leased, updated]),
    "1",
    [],
  ]);
});
