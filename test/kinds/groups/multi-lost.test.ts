/** Contract section 4: how long a MultiLock's hold lasts, and that it is lost and given back as one. */
import { expect } from "vitest";
import { isLockError, type LockError, type MultiHold, MultiLock } from "../../../src/index.js";
import { failure, STRANGER, watch } from "../../support/place/index.js";
import { type Apart, multiRow } from "./apart.js";

const WORDS = ["a0", "b1", "c0"] as const;
const ANSWER = 3_000;
/** The default watchdogTimeout. */
const KEPT = 30_000;

const errorsOf = (error: unknown) => ((error as LockError).errors ?? []) as LockError[];

multiRow(
  "members are raised to the lease when the last one is granted [§4 multi-lease]",
  async ({ a, b, of, group, servers, pass, settle }) => {
    for (const lease of [10_000, 600_000]) {
      a.at(1).keep("replies");
      const call = watch(group(...WORDS).lock({ lease }));
      await pass(2_000);
      await a.letGo();
      await settle();
      expect(call.value?.remaining).toBeGreaterThanOrEqual(lease * 0.99 - 2 - 2_000);
      expect(servers[0]?.ttl("a")).toBeGreaterThan(lease - 200);
      await call.value?.unlock();
      const theirs = await of(b, "c0").lock({ lease: 9_000 });
      const waiting = watch(group(...WORDS).lock({ lease }));
      await pass(9_100);
      expect(theirs.isHeld).toBe(false);
      expect(waiting.value?.remaining).toBeGreaterThan(lease * 0.99 - 2 - 200);
      for (const name of ["a", "c"]) expect(servers[0]?.ttl(name)).toBeGreaterThan(lease - 200);
      await waiting.value?.unlock();
      await failure(theirs.unlock());
    }
  },
);

multiRow(
  "without a lease the watchdog of each member's client keeps it, and the least deadline counts [§2 watchdog-any]",
  async ({ party, of, pass }) => {
    const [short, long] = [party({ watchdogTimeout: 3_000 }), party()];
    const hold = await new MultiLock(of(long, "a0"), of(short, "b1")).lock();
    expect(hold.remaining).toBe(2_968);
    expect(hold.members.map(({ remaining }) => remaining)).toEqual([29_698, 2_968]);
    await pass(2 * KEPT);
    expect([hold.isHeld, hold.remaining > 0]).toEqual([true, true]);
    await hold.unlock();
    expect(hold.remaining).toBe(0);
    for (const each of [short, long]) await each.close();
  },
);

interface Loss {
  readonly what: string;
  readonly reason: string;
  readonly lease?: number;
  /** Takes member `b1` away from the holder, so that the loss is known by the next deadline. */
  act(place: Apart, hold: MultiHold): unknown;
}

const LOSSES: readonly Loss[] = [
  {
    what: "one is forced by this client",
    reason: "forced",
    act: ({ a, of }) => of(a, "b1").forceUnlock(),
  },
  {
    what: "one is deleted, and a renewal finds it gone",
    reason: "expired",
    act: ({ servers }) => servers[1]?.delete("b"),
  },
  {
    what: "one belongs to another, as a renewal finds",
    reason: "taken",
    act: ({ servers }) => {
      servers[1]?.delete("b");
      servers[1]?.execute(["HSET", "b", STRANGER, "1"]);
      servers[1]?.execute(["PEXPIRE", "b", "20000"]);
    },
  },
  {
    what: "the server of one gives no answer until the deadline",
    reason: "unreachable",
    act: ({ a }) => a.at(1).cut(),
  },
  { what: "its lease is over", reason: "expired", lease: 10_000, act: () => {} },
  {
    what: "the lease of one is over",
    reason: "expired",
    lease: 60_000,
    act: (_, { members }) => members[1]?.extend(1_000),
  },
  {
    what: "the client of one is closed",
    reason: "closed",
    act: ({ a }) => a.clients[1]?.close({ timeout: 0 }),
  },
  {
    what: "one is given back by itself",
    reason: "forced",
    act: (_, { members }) => members[1]?.unlock(),
  },
];

for (const { what, reason, lease, act } of LOSSES)
  multiRow(
    `when ${what}, signal, isHeld, unlock and run agree, and the others are given back at once [§2 lost-is-final]`,
    async (place) => {
      const { a, group, held, pass } = place;
      const told = a.clients.map((client) => {
        const lost: object[] = [];
        client.on("lost", (event) => void (event.kind === "multi" && lost.push(event)));
        return lost;
      });
      const multi = group(...WORDS);
      const hold = await multi.lock({ lease });
      const gone = { code: "LOCK_LOST", lockName: "a,b,c", reason };
      await act(place, hold);
      await pass(KEPT);
      expect(hold.signal.reason).toMatchObject(gone);
      expect([hold.isHeld, hold.remaining]).toEqual([false, 0]);
      expect(hold.members.map(({ isHeld }) => isHeld)).toEqual([false, false, false]);
      expect(held().filter((word) => word !== "b1")).toEqual([]);
      for (const lost of told)
        expect(lost).toMatchObject([{ lockName: "a,b,c", reason, ownerId: hold.ownerId }]);
      expect(() => hold.assertHeld()).toThrow(expect.objectContaining(gone));
      expect(await failure(hold.extend(10_000))).toMatchObject(gone);
      // For a close the signal is enough, so unlock() does not reject.
      if (reason === "closed") await hold.unlock();
      else expect(await failure(hold.unlock())).toMatchObject(gone);
      await a.at(1).mend();
      await pass(KEPT);
      await a.close();
    },
  );

multiRow(
  "a member that is lost before the last one is granted makes the call reject LOCK_LOST [§4 multi]",
  async ({ a, of, group, held, pass, settle }) => {
    const multi = group(...WORDS);
    await multi.run(() => {});
    a.at(1).keep("replies");
    const call = watch(multi.lock());
    await settle();
    await of(a, "a0").forceUnlock();
    await a.letGo();
    await pass(ANSWER);
    expect(call.error).toMatchObject({ code: "LOCK_LOST", lockName: "a,b,c", reason: "forced" });
    expect(held()).toEqual([]);
  },
);

multiRow(
  "the loss of a member takes the nested holds too, and no hold of another member alone [§2 shared-loss]",
  async ({ a, of, group, settle }) => {
    const multi = group(...WORDS);
    const outer = await multi.lock();
    const inner = await multi.lock({ owner: outer });
    const single = await of(a, "a0").lock({ owner: outer });
    await of(a, "b1").forceUnlock();
    expect([outer.isHeld, inner.isHeld, single.isHeld]).toEqual([false, false, true]);
    await single.unlock();
    for (const hold of [outer, inner])
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
    await settle();
  },
);

multiRow(
  "an unlock() gives all members back past errors, and rejects with the first, all of them in errors [§4 group-face]",
  async ({ a, group, servers, held, pass }) => {
    const multi = group(...WORDS, "d0");
    const hold = await multi.lock();
    for (const name of ["a", "c"]) servers[0]?.delete(name);
    a.at(1).keep("requests");
    const call = watch(hold.unlock());
    await pass(ANSWER);
    expect(isLockError(call.error)).toBe(true);
    expect(
      errorsOf(call.error)
        .map(({ lockName, code }) => `${lockName} ${code}`)
        .sort(),
    ).toEqual(["a LOCK_LOST", "b UNAVAILABLE", "c LOCK_LOST"]);
    expect(call.error).toBe(errorsOf(call.error)[0]);
    expect(held()).toEqual(["b1"]);
    await a.letGo();
    await pass(ANSWER);
    expect(held()).toEqual([]);
  },
);

for (const [what, isGone] of [
  ["comes through later", false],
  ["finds its member gone later", true],
] as const)
  multiRow(
    `an unlock() with one silent server that ${what} is told once, and a further call says so [§2 unlock-unavailable] [B114]`,
    async ({ a, group, servers, held, pass, client }) => {
      const told: string[] = [];
      for (const name of ["released", "lost"] as const)
        client.on(name, ({ kind }) => void (kind === "multi" && told.push(name)));
      const hold = await group(...WORDS).lock({ lease: 600_000 });
      a.at(1).keep("requests");
      const first = watch(hold.unlock());
      await pass(ANSWER);
      expect(first.error).toMatchObject({ code: "UNAVAILABLE", lockName: "b" });
      expect([errorsOf(first.error).length, hold.isHeld, held()]).toEqual([1, false, ["b1"]]);
      if (isGone) servers[1]?.delete("b");
      await a.letGo();
      await pass(ANSWER);
      expect([told, held()]).toEqual([[isGone ? "lost" : "released"], []]);
      const again = hold.unlock();
      if (isGone) expect(await failure(again)).toMatchObject({ code: "LOCK_LOST" });
      else await again;
      expect(hold.signal.aborted).toBe(isGone);
    },
  );
