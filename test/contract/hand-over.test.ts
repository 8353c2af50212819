/** Contract section 2: a release while calls of the same process wait. The lock goes from hand to hand, but not for long. */
import { expect } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import type { FencedLock, Hold, LockOptions } from "../../src/index.js";
import {
  EXCLUSIVE,
  FENCED,
  failure,
  PLAIN,
  RED,
  row,
  SINGLE,
  type VirtualPlace,
  type Watched,
  WRITE,
  watch,
} from "../support/place/index.js";

const COMMAND_TIMEOUT = 1_000;
const LONG = 600_000;
const client = { commandTimeout: COMMAND_TIMEOUT, pollCap: LONG, watchdogTimeout: LONG };
/** The kinds whose release can grant the lock to the next one by the same command. */
const kinds = [PLAIN, FENCED, WRITE, RED];
const single = kinds.filter(({ members }) => members === 1);

interface Line extends VirtualPlace {
  /** The hold that has the lock. */
  readonly giver: Hold;
  /** The call that waits for it, and the call behind that. */
  readonly successor: Watched<Hold>;
  readonly next: Watched<Hold>;
  /** Aborts the successor's call. */
  readonly controller: AbortController;
}

/** A holder and two calls that wait behind it in the same process. Those that are left get the lock at the end. */
const inLine =
  (body: (line: Line) => Promise<unknown>, options: LockOptions = {}) =>
  async (place: VirtualPlace) => {
    const { lock, rival, settle, pass, server } = place;
    for (const each of [lock, rival]) await (await each.lock()).unlock();
    const giver = await lock.lock({ lease: 500_000 });
    const controller = new AbortController();
    const successor = watch(lock.lock({ signal: controller.signal, ...options }));
    const next = watch(lock.lock());
    await settle();
    await pass(10);
    server.took();
    await body({ ...place, giver, successor, next, controller });
    for (const call of [successor, next]) {
      await pass(100);
      await call.value?.unlock();
    }
  };

row(
  "a release grants the lock to the first that waits here, by the same command [§2 one-round-trip]",
  { kinds, client },
  async (place) => {
    const { a, server, kind } = place;
    a.listen("acquired", "released");
    const last = (event: "acquired" | "released") =>
      a
        .heard(event)
        .filter((heard) => heard.kind === kind.kind)
        .at(-1);
    await inLine(
      async ({ giver, successor, next, settle, view }) => {
        await giver.unlock();
        await settle();
        expect(server.took()).toHaveLength(1);
        const hold = successor.value as Hold;
        expect([hold.isHeld, next.state, await view.ttl()]).toEqual([true, "pending", 200_000]);
        expect(hold.ownerId).not.toBe(giver.ownerId);
        expect(hold.remaining).toBe(200_000 * 0.99 - 2);
        expect(await view.count()).toBe(1);
        expect(last("released")).toMatchObject({ ownerId: giver.ownerId });
        expect(last("acquired")).toMatchObject({ ownerId: hold.ownerId, waited: 10 });
      },
      { lease: 200_000 },
    )(place);
  },
);

row.real(
  "those who wait in a process get the lock in the order of their calls [§2 woken-by-message]",
  { kinds: SINGLE.filter(({ exclusive }) => exclusive), client: { pollCap: 60_000 } },
  async ({ lock, pass }) => {
    const order: number[] = [];
    const first = await lock.lock();
    const visits = [0, 1, 2, 3].map(async (i) => {
      const hold = await lock.lock();
      order.push(i);
      await pass(1);
      await hold.unlock();
    });
    await pass(30);
    await first.unlock();
    await pass(500);
    await Promise.all(visits);
    expect(order).toEqual([0, 1, 2, 3]);
  },
);

row(
  "calls of an owner that is being handed the lock re-enter [§3 second-while-first-waits] [B97]",
  { kinds: single, client },
  async ({ lock, a, settle }) => {
    const owner = a.client.newOwner();
    const giver = await lock.lock();
    const successor = watch(lock.lock({ owner }));
    await settle();
    const given = giver.unlock();
    const beside = [lock.tryLock(0, 60_000, { owner }), lock.lock({ owner, wait: 0 })].map(watch);
    await given;
    await settle();
    const holds = [successor, ...beside].map(({ value }) => value as Hold);
    expect(new Set(holds.map(({ ownerId }) => ownerId)).size).toBe(1);
    expect(await lock.getHoldCount({ owner })).toBe(3);
    for (const hold of holds) await hold.unlock();
  },
);

row(
  "nobody is handed a lock that its owner has by another hold as well [§2 unlock-keeps-deadline]",
  { kinds, client },
  inLine(async ({ giver, lock, successor, settle }) => {
    const inner = await lock.lock({ owner: giver, lease: 500_000 });
    await inner.unlock();
    await settle();
    expect([successor.state, giver.isHeld]).toEqual(["pending", true]);
    await giver.unlock();
    await settle();
    expect(successor.state).toBe("resolved");
  }),
);

for (const [when, way, isOnItsWay] of [
  ["before the command is sent", undefined, false],
  ["right behind the unlock", "requests", false],
  ["while the requests are on their way", "requests", true],
  ["while the replies are on their way", "replies", true],
] as const) {
  row(
    `a successor that is aborted ${when} gets and keeps nothing, and the next one has the lock [§2 nothing-left] [F42]`,
    { kinds, client },
    inLine(async ({ giver, successor, next, controller, settle, a, view }) => {
      if (!way) controller.abort("enough");
      else a.keep(way);
      const back = watch(giver.unlock());
      if (isOnItsWay) await settle();
      controller.abort("enough");
      await settle();
      expect(successor.outcome).toBe("enough");
      await a.letGo();
      await settle();
      expect([back.outcome, next.value?.isHeld, await view.count()]).toEqual([undefined, true, 1]);
    }),
  );
}

row(
  "a hand-over that Redis refuses for a moment goes to nobody who has left meanwhile [§2 nothing-left]",
  { kinds: single, client },
  inLine(async ({ giver, successor, next, controller, server, settle, pass }) => {
    let refusals = 0;
    server.instead = ({ args }) => {
      if (refusals > 0 || !args.includes("job")) return undefined;
      refusals++;
      throw new ReplyError("LOADING Redis is loading the dataset in memory");
    };
    const back = watch(giver.unlock());
    await settle();
    expect(refusals).toBe(1);
    controller.abort("enough");
    await pass(200);
    expect([back.outcome, successor.outcome, next.value?.isHeld]).toEqual([undefined, "enough", true]);
  }),
);

row(
  "a giver that has lost the lock hands over nothing, and those who wait get it all the same [§2 loss-noticed] [B169]",
  { kinds, client },
  inLine(async ({ giver, successor, view, settle }) => {
    await view.wipe();
    expect(await failure(giver.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await settle();
    expect(successor.value?.isHeld).toBe(true);
  }),
);

for (const stalls of [false, true]) {
  row(
    `the lease of a hand-over counts from when it was sent, also if ${stalls ? "the process stalls right behind it" : "its answer is late"} [§2 remaining-from-send]`,
    { kinds, client },
    inLine(
      async ({ giver, successor, a, server, pass }) => {
        a.keep("replies");
        const back = watch(giver.unlock());
        if (stalls) server.clock.moveTo(server.clock.mono() + 700);
        else await pass(700);
        await a.letGo();
        expect(back.outcome).toBeUndefined();
        expect(successor.value?.remaining).toBe(200_000 * 0.99 - 2 - 700);
      },
      { lease: 200_000 },
    ),
  );
}

row(
  "a successor whose lease is over before the answer comes leaves the lock to the next one [§2 late-grant]",
  { kinds, client },
  inLine(
    async ({ giver, successor, next, a, pass }) => {
      a.keep("replies");
      const back = watch(giver.unlock());
      await pass(400);
      await a.letGo();
      await pass(10);
      expect([back.outcome, next.value?.isHeld ?? successor.value?.isHeld]).toEqual([undefined, true]);
    },
    { lease: 300 },
  ),
);

row(
  "an unlock for whose successor there is no token succeeds, and those who wait learn why [§6 wrong-data] [B124]",
  { kinds: [FENCED], client },
  async ({ lock, server, settle }) => {
    const giver = await lock.lock();
    const calls = [lock, lock].map((each) => watch(each.lock()));
    await settle();
    server.delete("redisson_lock_token:{job}");
    server.execute(["SET", "redisson_lock_token:{job}", "theirs"]);
    const given = watch(giver.unlock());
    await settle();
    expect(given.outcome).toBeUndefined();
    expect(calls.map(({ outcome }) => outcome)).toEqual(["WRONG_DATA", "WRONG_DATA"]);
  },
);

row(
  "the token rises with each outermost grant, also in a hand-over, and is the same for nested ones [§4 fenced]",
  { kinds: [FENCED], client },
  async ({ lock, twin, settle, pass }) => {
    const [mine, theirs] = [lock, twin] as unknown as [FencedLock, FencedLock];
    const outer = await mine.lock();
    const inner = await mine.lock({ owner: outer });
    expect([typeof outer.token, inner.token]).toEqual(["bigint", outer.token]);
    const successor = watch(mine.lock());
    await settle();
    await inner.unlock();
    await outer.unlock();
    await settle();
    expect(successor.value?.token).toBeGreaterThan(outer.token);
    await successor.value?.unlock();
    await pass(100);
    const last = await theirs.lock();
    expect(last.token).toBeGreaterThan(successor.value?.token as bigint);
    await last.unlock();
  },
);

row(
  "those who wait for a lock that leaves its process all get it, whoever gives up meanwhile [§2 woken-by-message] [§2 nothing-left]",
  { kinds: EXCLUSIVE.filter((kind) => SINGLE.includes(kind)), client },
  async (place) => {
    const { lock, twin, pass, settle } = place;
    const giver = await lock.lock();
    const controllers = [0, 1].map(() => new AbortController());
    const calls = [lock, twin, lock, twin, lock].map((each, i) =>
      watch(each.lock(i < 2 ? { signal: controllers[i]?.signal as AbortSignal } : {})),
    );
    await pass(100);
    const back = giver.unlock();
    controllers[0]?.abort("enough");
    await settle();
    controllers[1]?.abort("enough");
    await back;
    for (const _ of calls) {
      await pass(100);
      for (const { value } of calls) if (value?.isHeld) await value.unlock();
    }
    expect(calls.slice(2).map(({ state }) => state)).toEqual(["resolved", "resolved", "resolved"]);
  },
);

row(
  "each permit that is given back goes to a waiter, whoever gives up while tries are on their way [§5 semaphore] [B22]",
  { kinds: [PLAIN], client },
  async ({ a, client: mine, rivals, server, settle, pass }) => {
    const [semaphore, theirs] = [mine, rivals].map((each) => each.getSemaphore("places"));
    await theirs?.trySetPermits(2);
    await theirs?.acquire(2);
    const controller = new AbortController();
    const calls = [1, 2].map(() => watch(semaphore?.acquire() as Promise<void>));
    const leaving = watch(semaphore?.acquire(1, { signal: controller.signal }) as Promise<void>);
    const last = watch(semaphore?.acquire() as Promise<void>);
    await settle();
    a.keep("requests");
    await theirs?.release(2);
    await settle();
    controller.abort("enough");
    await settle();
    server.took();
    await a.letGo();
    await pass(10);
    expect(calls.map(({ state }) => state)).toEqual(["resolved", "resolved"]);
    expect([leaving.outcome, last.state]).toEqual(["enough", "pending"]);
    expect(server.took().length).toBeLessThanOrEqual(3);
    await semaphore?.release(1);
    await pass(10);
    expect(last.state).toBe("resolved");
    server.delete("places");
  },
);
