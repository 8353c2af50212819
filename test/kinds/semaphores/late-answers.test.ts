/**
 * Contract section 5: answers that come late, or never: what a call that was given up still does and tells.
 */
import { channel } from "node:diagnostics_channel";
import { expect } from "vitest";
import { ReplyError } from "../../../src/entries/testing/reply.js";
import type { LockCallContext } from "../../../src/index.js";
import { deferred, NAME, watch } from "../../support/place/index.js";
import { ID, NEVER, type Numbers, test } from "./place.js";

const BUSY = "NOREPLICAS Not enough good replicas to write.";

/** One permit of two, kept by the watchdog or with a lease. */
async function onePermit({ permits }: Numbers, lease?: number): Promise<string> {
  await permits().trySetPermits(2);
  return permits().acquire({ lease });
}

/** The server refuses a script, while `refuses` says so. */
function refuse(
  { server }: Numbers,
  script: string,
  refuses: (args: readonly string[]) => boolean,
  text = BUSY,
): void {
  server.instead = ({ name, args }) => {
    if (name === script && refuses(args)) throw new ReplyError(text);
    return undefined;
  };
}

test.with({ commandTimeout: 300, watchdogTimeout: 600 })(
  "a kept permit whose new lease gets no answer is lost at the deadline that it has [§5 permits] [§6 reasons] [B226]",
  async (place) => {
    const { a, permits, pass } = place;
    const id = await onePermit(place);
    a.listen("lost").keep("requests");
    const update = watch(permits().updateLeaseTime(id, 60_000));
    await pass(591);
    expect(a.told).toEqual([]);
    await pass(1);
    expect(a.heard("lost")).toMatchObject([{ permitId: id, reason: "unreachable" }]);
    await pass(300);
    expect(update.outcome).toBe("UNAVAILABLE");
    await a.letGo();
    expect([await permits().availablePermits(), a.heard("lost").length]).toEqual([2, 1]);
  },
);

test.with({ commandTimeout: 1_000, watchdogTimeout: 600 })(
  "a new lease that is answered when its permit was lost is none: the permit is given back [§5 permits]",
  async (place) => {
    const { a, permits, pass } = place;
    const id = await onePermit(place);
    a.listen("lost").keep("replies");
    const update = watch(permits().updateLeaseTime(id, 60_000));
    await pass(600);
    expect(a.heard("lost")).toMatchObject([{ permitId: id, reason: "unreachable" }]);
    await a.letGo();
    expect([update.value, await permits().availablePermits()]).toEqual([false, 2]);
  },
);

test("a lease, or a number of permits, that gets no answer may be set by then, and is set by a further call [§5 permits] [B225]", async (place) => {
  const { a, permits, pass, left } = place;
  const id = await onePermit(place);
  a.keep("requests");
  const given = [watch(permits().updateLeaseTime(id, 60_000)), watch(permits().setPermits(9))];
  await pass(1_100);
  expect(given.map(({ outcome }) => outcome)).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
  await a.letGo();
  expect(await permits().updateLeaseTime(id, 30_000)).toBe(true);
  await permits().setPermits(3);
  expect([await permits().getPermits(), left()[id]]).toEqual([3, 30_000]);
});

test("a kept permit whose new leases fail is kept by the watchdog again, once none is under way [§5 permits]", async (place) => {
  const { a, permits, pass } = place;
  const id = await onePermit(place);
  a.listen("lost", "renewed");
  refuse(place, "permits/update", () => true, "NOPERM this user has no permissions");
  const updates = [1_000, 60_000].map((lease) => watch(permits().updateLeaseTime(id, lease)));
  await pass(0);
  expect(updates.map(({ outcome }) => outcome)).toEqual(["UNSUPPORTED", "UNSUPPORTED"]);
  await pass(100_000);
  expect([a.heard("lost").length, a.heard("renewed").length > 8]).toEqual([0, true]);
});

test("a release is told once it is answered, though it was given up, and a further one shares its outcome [§1 events] [B76] [B116]", async (place) => {
  const { a, semaphore, permits, pass } = place;
  const ids = [await onePermit(place), await permits().acquire({ lease: 60_000 })];
  a.listen().keep("requests");
  const calls = [watch(semaphore().release(2)), ...ids.map((id) => watch(permits().release(id)))];
  await pass(1_000);
  expect([calls.map(({ outcome }) => outcome), a.told]).toEqual([Array(3).fill("UNAVAILABLE"), []]);
  const again = watch(permits().release(ids[0] ?? ""));
  await a.letGo();
  expect(a.told.map(({ name }) => name)).toEqual(["released", "released", "released"]);
  const told = a.heard("released").map(({ kind, permitId }) => permitId ?? kind);
  expect(new Set(told)).toEqual(new Set(["semaphore", ...ids]));
  expect([again.state, await permits().tryRelease(ids[0] ?? "")]).toEqual(["resolved", false]);
  expect([a.client.stats().released, await place.counts()]).toEqual([3, ["4", 0]]);
});

test("a release that no answer came to for 40 s does not count, and `error` tells so [§5 counts-once]", async (place) => {
  const { a, semaphore, pass, counts } = place;
  await semaphore().trySetPermits(2);
  a.listen("error");
  await a.cut();
  const release = watch(semaphore().release());
  await pass(30_000);
  expect([release.outcome, a.told]).toEqual(["UNAVAILABLE", []]);
  await pass(11_000);
  await a.mend();
  await pass(1_000);
  expect(a.heard("error")).toMatchObject([
    { lockName: NAME, kind: "semaphore", cause: { code: "UNAVAILABLE" } },
  ]);
  expect(await counts()).toEqual(["2", 0]);
});

for (const by of ["semaphore", "permits"] as const) {
  test.with({ replicas: 1, replicasTimeout: 200, commandTimeout: 300 })(
    `a grant of the ${by} by the connection of replicas that is answered late is had by the call if it still waits, and by nobody otherwise [§2 nothing-left] [B295]`,
    async ({ a, server, semaphore, permits, pass, counts }) => {
      server.instead = ({ name }) => (name === "WAIT" ? 1 : undefined);
      const take = (wait: number): Promise<unknown> =>
        by === "permits" ? permits().tryAcquire(wait, NEVER) : semaphore().tryAcquire(1, wait);
      await semaphore().trySetPermits(0);
      const waiting = watch(take(NEVER));
      await pass(100);
      a.keep("replies", a.connections[2]);
      await semaphore(1).release();
      await pass(2_000);
      expect([waiting.state, (await counts())[0]]).toEqual(["pending", "0"]);
      await a.letGo();
      await pass(100);
      expect([waiting.state, (await counts())[0]]).toEqual(["resolved", "0"]);
      await semaphore(1).release();
      a.keep("requests", a.connections[2]);
      const givenUp = watch(take(0));
      await pass(61_000);
      expect(givenUp.outcome).toBe("UNAVAILABLE");
      await a.letGo();
      await pass(1_000);
      expect((await counts())[0]).toBe("1");
    },
  );
}

// Microtasks between an answer and the close: at some of them the grant is on its way to the caller.
for (let ticks = 0; ticks < 12; ticks++) {
  for (const by of ["acquire", "run"])
    test(`a close ${ticks} ticks after a permit was granted to ${by}() is told alike by caller, event and channel [§8 diagnostics] [B119] [B299]`, async (place) => {
      const { a, permits, settle } = place;
      await permits().trySetPermits(2);
      const outcomes: unknown[] = [];
      const inside = deferred();
      const onEnd = (context: LockCallContext & { result?: unknown }) => {
        outcomes.push(context.outcome);
        // What a log may show of it is the permit's id alone.
        if (context.outcome === "acquired") expect(context.result).toEqual(ID);
      };
      const ends = channel("tracing:holdfast:lock:asyncEnd");
      ends.subscribe(onEnd as never);
      a.listen("acquired", "gaveUp", "lost").keep("replies");
      const call = watch<unknown>(by === "run" ? permits().run(() => inside.promise) : permits().acquire());
      await settle();
      const arrived = a.letGo();
      for (let i = 0; i < ticks; i++) await undefined;
      await a.client.close({ timeout: 0 });
      await arrived;
      inside.resolve();
      await settle();
      ends.unsubscribe(onEnd as never);
      const [told, isGranted] = [a.told.map(({ name }) => name), outcomes.includes("acquired")];
      expect([told, outcomes]).toEqual(
        isGranted ? [["acquired", "lost"], ["acquired"]] : [["gaveUp"], ["closed"]],
      );
      const whenGranted = by === "run" ? "LOCK_LOST" : ID;
      expect(call.outcome).toEqual(isGranted ? whenGranted : "CLIENT_CLOSED");
    });
}
