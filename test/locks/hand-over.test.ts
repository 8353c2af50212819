/** A lock that is given back while somebody of the same process waits goes to that one by the same command. In virtual time. */
import { describe, expect, test } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import type { Hold, Lock, LockOptions } from "../../src/index.js";
import { byName, KINDS, PLAIN } from "../contract/kinds.js";
import { expectNothingLeft, failure, NAME, type Scene, scene, type Watched, watch } from "./scene.js";

const COMMAND_TIMEOUT = 1_000;
/** Nobody is woken by the poll. */
const NEVER = 600_000;
/** The kinds whose locks go from hand to hand by one command. */
const PASSED = KINDS.filter(({ name }) => ["lock", "fenced lock", "write side"].includes(name));

interface Line extends Scene {
  readonly lock: Lock;
  /** Of somebody else's client. */
  readonly rival: Lock;
  /** Has the lock. */
  readonly giver: Hold;
  /** Waits for it, and the other one behind it. */
  readonly successor: Watched<Hold>;
  readonly next: Watched<Hold>;
  /** Ends the successor's call. */
  readonly controller: AbortController;
}

describe.each(byName(PASSED))("%s", (_, kind) => {
  /** A holder and two that wait behind it in one process. */
  const lineUp = async (options: LockOptions = {}): Promise<Line> => {
    const place = scene({ commandTimeout: COMMAND_TIMEOUT, pollCap: NEVER, watchdogTimeout: NEVER });
    place.a.listen("acquired", "released", "lost", "error");
    const [lock, rival] = [kind.make(place.a.client, NAME), kind.make(place.b.client, NAME)];
    for (const each of [lock, rival]) await (await each.lock()).unlock();
    const giver = await lock.lock({ lease: 500_000 });
    const controller = new AbortController();
    const successor = watch(lock.lock({ signal: controller.signal, ...options }));
    const next = watch(lock.lock());
    await place.settle();
    await place.advance(100);
    place.server.took();
    return { ...place, lock, rival, giver, successor, next, controller };
  };
  /** Those who are left have it one after the other. */
  const end = async (place: Line, ...calls: Watched<Hold>[]) => {
    for (const call of calls) {
      await place.settle();
      await call.value?.unlock();
    }
    await expectNothingLeft(place);
  };

  test("one command gives it back and grants it", async () => {
    const place = await lineUp({ lease: 200_000 });
    const { giver, successor, next, server, settle, a } = place;
    await giver.unlock();
    await settle();
    expect(server.took()).toEqual([expect.stringMatching(/\/pass$/)]);
    expect(successor.value?.isHeld).toBe(true);
    expect(successor.value?.ownerId).not.toBe(giver.ownerId);
    expect(server.hash()).toEqual(kind.fields(successor.value?.ownerId as string, 1));
    expect(server.ttl()).toBe(200_000);
    expect(successor.value?.remaining).toBe(200_000 * 0.99 - 2);
    expect(a.heard("released").at(-1)).toMatchObject({ ownerId: giver.ownerId });
    expect(a.heard("acquired").at(-1)).toMatchObject({ ownerId: successor.value?.ownerId, waited: 100 });
    server.took();
    await successor.value?.unlock();
    await settle();
    expect(server.took()).toEqual([expect.stringMatching(/\/pass$/)]);
    await end(place, next);
  });

  test("nobody is handed a lock that its owner has by another hold as well", async () => {
    const place = await lineUp();
    const { giver, lock, successor, server, settle } = place;
    const inner = await lock.lock({ owner: giver, lease: 500_000 });
    server.took();
    await inner.unlock();
    await settle();
    expect(successor.outcome).toBe("pending");
    expect(server.took()).toEqual([expect.stringMatching(/\/release$/)]);
    await giver.unlock();
    await settle();
    expect(successor.state).toBe("resolved");
    await end(place, successor, place.next);
  });

  test("a successor that is aborted before the command is sent is passed over", async () => {
    const place = await lineUp();
    const { giver, successor, next, controller, settle } = place;
    controller.abort("enough");
    await giver.unlock();
    await settle();
    expect(successor.outcome).toBe("enough");
    expect(next.value?.isHeld).toBe(true);
    await end(place, next);
  });

  test.each(["requests", "replies"] as const)(
    "a successor that is aborted while the %s are on their way gets and keeps nothing",
    async (way) => {
      const place = await lineUp();
      const { giver, successor, next, controller, settle, a, server } = place;
      a.keep(way);
      const back = watch(giver.unlock());
      await settle();
      controller.abort("enough");
      await settle();
      expect(successor.outcome).toBe("enough");
      await a.letGo();
      await settle();
      expect(back.outcome).toBeUndefined();
      expect(next.value?.isHeld).toBe(true);
      expect(server.hash()).toEqual(kind.fields(next.value?.ownerId as string, 1));
      await end(place, next);
    },
  );

  test.each(["requests", "replies"] as const)(
    "when the %s of the command are late the giver is told in time, and the successor waits on and gets it",
    async (way) => {
      const place = await lineUp();
      const { giver, successor, next, a, advance, server } = place;
      a.keep(way);
      const back = watch(giver.unlock());
      await advance(COMMAND_TIMEOUT);
      expect(back.outcome).toBe("UNAVAILABLE");
      expect(successor.outcome).toBe("pending");
      await advance(500);
      await a.letGo();
      await advance(10);
      expect(await giver.unlock()).toBeUndefined();
      expect(successor.value?.isHeld).toBe(true);
      expect(server.hash()).toEqual(kind.fields(successor.value?.ownerId as string, 1));
      await end(place, successor, next);
    },
  );

  test("a command that is made anew after a refusal that passes hands over to nobody who has left", async () => {
    const place = await lineUp();
    const { giver, successor, next, controller, server, settle, advance } = place;
    const refused: string[] = [];
    server.instead = ({ name }) => {
      if (!name.endsWith("/pass") || refused.length > 0) return undefined;
      refused.push(name);
      throw new ReplyError("LOADING Redis is loading the dataset in memory");
    };
    const back = watch(giver.unlock());
    await settle();
    expect(refused).toHaveLength(1);
    controller.abort("enough");
    await advance(200);
    expect(back.outcome).toBeUndefined();
    expect(successor.outcome).toBe("enough");
    expect(next.value?.isHeld).toBe(true);
    const verbs = server.took().map((name) => name.split("/")[1]);
    expect(verbs).toContain("release");
    expect(verbs).not.toContain("pass");
    await end(place, next);
  });

  test("a command that is sent again, since its answer was lost, hands over once", async () => {
    const place = await lineUp();
    const { giver, successor, next, a, settle, server } = place;
    a.keep("replies");
    const back = watch(giver.unlock());
    await settle();
    await a.reconnect();
    await a.letGo();
    expect(back.outcome).toBeUndefined();
    expect(successor.value?.isHeld).toBe(true);
    expect(next.outcome).toBe("pending");
    expect(server.hash()).toEqual(kind.fields(successor.value?.ownerId as string, 1));
    await end(place, successor, next);
  });

  test("a lock that the giver has no more goes to nobody by its command", async () => {
    const place = await lineUp();
    const { giver, successor, next, server, settle, advance } = place;
    server.delete();
    expect(await failure(giver.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await settle();
    await advance(1_000);
    expect(successor.value?.isHeld).toBe(true);
    await end(place, successor, next);
  });

  test("its lease counts from when the command was sent", async () => {
    const place = await lineUp({ lease: 200_000 });
    const { giver, successor, next, a, advance } = place;
    a.keep("replies");
    const back = watch(giver.unlock());
    await advance(700);
    await a.letGo();
    expect(back.outcome).toBeUndefined();
    expect(successor.value?.remaining).toBe(200_000 * 0.99 - 2 - 700);
    await end(place, successor, next);
  });

  test("a successor whose lease is over before the answer is here gives it on", async () => {
    const place = await lineUp({ lease: 300 });
    const { giver, successor, next, a, settle, advance } = place;
    a.keep("replies");
    const back = watch(giver.unlock());
    await settle();
    await advance(400);
    await a.letGo();
    await advance(10);
    expect(back.outcome).toBeUndefined();
    expect(successor.error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(next.value?.isHeld).toBe(true);
    await end(place, next);
  });

  test("a lock that goes from hand to hand is offered to others after some hand-overs, and comes back", async () => {
    const place = scene({ pollCap: NEVER });
    const { server, advance } = place;
    const [lock, rival] = [kind.make(place.a.client, NAME), kind.make(place.b.client, NAME)];
    let [grants, isOver] = [0, false];
    const work = async () => {
      while (!isOver) {
        const hold = await lock.lock();
        grants++;
        await new Promise<void>((done) => void server.clock.after(1, done));
        await hold.unlock();
      }
    };
    const workers = [work(), work()];
    await advance(20);
    for (let visits = 0; visits < 3; visits++) {
      const before = grants;
      const theirs = watch(rival.lock());
      for (let ms = 0; ms < 100 && theirs.state === "pending"; ms++) await advance(1);
      expect(theirs.value?.isHeld).toBe(true);
      expect(grants - before).toBeLessThan(40);
      const left = grants;
      await advance(5);
      expect(grants).toBe(left);
      await theirs.value?.unlock();
      await advance(60);
      expect(grants).toBeGreaterThan(left + 20);
    }
    isOver = true;
    await advance(10);
    await Promise.all(workers);
    await expectNothingLeft(place);
  });

  test("the release of a lock that nobody else waits for is told to nobody of this process by message", async () => {
    const place = await lineUp();
    const { giver, successor, next, settle, server } = place;
    await giver.unlock();
    await settle();
    await successor.value?.unlock();
    await settle();
    await next.value?.unlock();
    await settle();
    expect(server.took().map((name) => name.split("/")[1])).toEqual(["pass", "pass", "release"]);
    await expectNothingLeft(place);
  });

  test("a run is handed its hold likewise, when it is its turn", async () => {
    const place = scene({ pollCap: NEVER });
    const lock = kind.make(place.a.client, NAME);
    const order: string[] = [];
    const giver = await lock.lock();
    const runs = ["a", "b"].map((name) => lock.run(() => order.push(name)));
    await place.a.client.scope(async () => {
      for (const name of ["c", "d"]) runs.push(lock.run(() => order.push(name)));
      await place.settle();
    });
    await giver.unlock();
    await Promise.all(runs);
    expect(order).toEqual(["a", "b", "c", "d"]);
    await expectNothingLeft(place);
  });

  test("a successor's owner that is being served otherwise is not handed anything", async () => {
    const place = await lineUp();
    const { giver, successor, next, controller, lock, a, settle } = place;
    controller.abort("enough");
    await settle();
    const owner = a.client.newOwner();
    const first = watch(lock.lock({ owner }));
    const second = watch(lock.lock({ owner }));
    await settle();
    await giver.unlock();
    await settle();
    expect(successor.outcome).toBe("enough");
    await next.value?.unlock();
    await settle();
    expect(first.value?.ownerId).toBe(second.value?.ownerId);
    await end(place, first, second);
  });
});

test("a lock with acknowledged grants is handed to nobody, and the next one is told", async () => {
  const place = scene({ pollCap: NEVER, replicas: 1 });
  place.server.instead = ({ name }) => (name === "WAIT" ? 1 : undefined);
  const lock = PLAIN.make(place.a.client, NAME);
  const giver = await lock.lock();
  const next = watch(lock.lock());
  await place.settle();
  place.server.took();
  await giver.unlock();
  await place.settle();
  expect(next.value?.isHeld).toBe(true);
  expect(place.server.took()).toEqual(["lock/release", "lock/acquire"]);
  await next.value?.unlock();
  await expectNothingLeft(place);
});
