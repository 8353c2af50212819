/** Contract section 2: what a lock answers about itself. And section 8: the current hold. */
import { expect } from "vitest";
import { failure, PLAIN, RED, row, SINGLE, type VirtualPlace, watch } from "../support/place/index.js";

const COMMAND_TIMEOUT = 1_000;
const count = ({ servers }: VirtualPlace) => servers.flatMap((server) => server.took()).length;

row.real("isLocked and remainTimeToLive tell of any holder [§2 queries]", async ({ lock, twin }) => {
  expect([await lock.isLocked(), await lock.remainTimeToLive()]).toEqual([false, -2]);
  const hold = await twin.lock({ lease: 10_000 });
  expect(await lock.isLocked()).toBe(true);
  const ttl = await lock.remainTimeToLive();
  expect(ttl).toBeGreaterThan(5_000);
  expect(ttl).toBeLessThanOrEqual(10_000);
  await hold.unlock();
  expect([await lock.isLocked(), await lock.remainTimeToLive()]).toEqual([false, -2]);
});

row(
  "both ask Redis, and are false and 0 when it has nothing of the owner [§2 hold-count-own]",
  async (place) => {
    const { lock, view, kind } = place;
    const owner = await lock.lock();
    count(place);
    expect(await lock.isHeldByCurrentOwner({ owner })).toBe(true);
    expect(await lock.getHoldCount({ owner })).toBe(1);
    expect(place.servers.flatMap((server) => server.ran).length).toBeGreaterThanOrEqual(2 * kind.servers);
    await view.wipe();
    expect([await lock.isHeldByCurrentOwner({ owner }), await lock.getHoldCount({ owner })]).toEqual([
      false,
      0,
    ]);
    await failure(owner.unlock());
  },
);

row(
  "both are false and 0 without a command for an owner that holds nothing, or no owner [§2 queries]",
  async (place) => {
    const { lock, other, client, servers } = place;
    const hold = await lock.lock();
    const sent = () => servers.reduce((sum, server) => sum + server.ran.length, 0);
    const before = sent();
    const expectNothing = async (options?: object) => {
      expect([await lock.isHeldByCurrentOwner(options), await lock.getHoldCount(options)]).toEqual([
        false,
        0,
      ]);
    };
    await expectNothing();
    await expectNothing({ owner: client.newOwner() });
    await client.scope(() => expectNothing());
    expect(sent()).toBe(before);
    await other.run(() => expectNothing());
    await hold.unlock();
    const after = sent();
    await expectNothing({ owner: hold });
    expect(sent()).toBe(after);
  },
);

row(
  "getHoldCount is this process's own count, whatever others wrote in Redis [§2 hold-count-own]",
  { kinds: SINGLE },
  async ({ lock, server, kind }) => {
    const hold = await lock.lock();
    const [field] = Object.entries(kind.fields(hold.ownerId, 7)).find(([, times]) => times === "7") ?? [];
    server.execute(["HSET", "job", field as string, "7"]);
    const times = await lock.getHoldCount({ owner: hold });
    await lock.forceUnlock();
    expect(times).toBe(1);
  },
);

row(
  "a hold whose unlock() is on its way counts no more, and that is known without a command [§2 hold-count-own]",
  { kinds: SINGLE },
  async ({ lock, a, server }) => {
    const hold = await lock.lock();
    a.keep("replies");
    const back = watch(hold.unlock());
    server.took();
    expect(await lock.getHoldCount({ owner: hold })).toBe(0);
    expect(server.took()).toEqual([]);
    await a.letGo();
    expect(back.state).toBe("resolved");
  },
);

row(
  "without an answer each question, and forceUnlock(), is UNAVAILABLE in time [§2 unavailable]",
  { client: { commandTimeout: COMMAND_TIMEOUT } },
  async ({ lock, other, a, pass, kind }) => {
    const owner = await lock.lock({ lease: 60_000 });
    a.keep("replies");
    const calls = [
      lock.isLocked(),
      lock.remainTimeToLive(),
      lock.getHoldCount({ owner }),
      lock.isHeldByCurrentOwner({ owner }),
      other.forceUnlock(),
    ].map((call: Promise<unknown>) => watch(call));
    await pass(COMMAND_TIMEOUT);
    const code = kind === RED ? "QUORUM" : "UNAVAILABLE";
    expect(calls.map(({ outcome }) => outcome)).toEqual([code, code, code, code, expect.any(String)]);
    await a.letGo();
    await owner.unlock();
  },
);

row(
  "in a run currentHold() is the hold of its function, and null before and after [§8 current-hold]",
  async ({ lock }) => {
    expect(lock.currentHold()).toBeNull();
    await lock.run(async (hold) => {
      expect(lock.currentHold()).toBe(hold);
      await lock.run((nested) => expect(lock.currentHold()).toBe(nested));
      expect(lock.currentHold()).toBe(hold);
    });
    expect(lock.currentHold()).toBeNull();
  },
);

row(
  "in a scope currentHold() is the innermost that is held, and never what others have or what is lost [§8 current-hold]",
  async ({ client, lock, other }) => {
    await client.scope(async () => {
      const outer = await lock.lock();
      const inner = await lock.lock();
      expect([lock.currentHold(), other.currentHold()]).toEqual([inner, null]);
      await client.scope(async () => expect(lock.currentHold()).toBeNull());
      await inner.unlock();
      expect(lock.currentHold()).toBe(outer);
      await lock.forceUnlock();
      expect(lock.currentHold()).toBeNull();
    });
    const bare = await lock.lock();
    expect(lock.currentHold()).toBeNull();
    await bare.unlock();
  },
);

row(
  "inspect() of all kinds shows a lock that was taken while it looked [§8 kinds-all] [B273]",
  { kinds: [PLAIN] },
  async ({ client, lock, twin, a, view, settle }) => {
    await view.call("SET", view.name, "3");
    a.keep("replies");
    const shown = watch(client.inspect(lock.name, { kinds: "all" }));
    await settle();
    await view.call("DEL", view.name);
    const theirs = await twin.lock();
    await a.letGo();
    await settle();
    expect(shown.value).toMatchObject({ kind: "lock", holders: [{ ownerId: theirs.ownerId }] });
    await theirs.unlock();
  },
);
