/** Contract section 1: the events of a client, each with its payload. */
import { describe, expect } from "vitest";
import { type Lock, LockClient, type LockEventName, type LockKind } from "../../src/index.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  connectionLike,
  type FaultProxy,
  SLACK,
  STEADY,
  startProxy,
  UNHURRIED,
  until,
} from "../support/index.js";
import {
  EVENTS,
  failure,
  nextEvent,
  recordEvents,
  runAtLast,
  type SeenEvent,
  untilWaiting,
} from "./helpers.js";
import { eachSingleKind } from "./scene.js";
import type { Wire } from "./wire.js";

failOnUnhandledRejections();

interface More {
  proxy: FaultProxy;
  /** A client with a short time-out, through the proxy. */
  client: LockClient;
  /** The events of that client since the start of the test. */
  events: SeenEvent[];
  /** The payloads of all events with one name. */
  of: (name: LockEventName) => SeenEvent["payload"][];
  /** The fields that all events of the lock have in common. */
  about: { lockName: string; kind: LockKind };
}

eachSingleKind("the events of a client", (base, kind) => {
  const test = base.extend<More>({
    proxy: async ({ server }, use) => {
      await using proxy = await startProxy(server);
      await use(proxy);
    },
    client: async ({ proxy }, use) => {
      const client = new LockClient(connectionLike(proxy.connect()), {
        watchdogTimeout: STEADY,
        // An unanswered renewal fails, and is reported, before the hold is lost.
        commandTimeout: STEADY / 3,
      });
      await until("Redis answers", () => client.ready().then(() => true));
      await use(client);
      proxy.restore();
      await client.close({ timeout: 0 });
    },
    events: ({ client }, use) => use(recordEvents(client)),
    of: ({ events }, use) =>
      use((wanted) => events.filter(({ name }) => name === wanted).map(({ payload }) => payload)),
    about: ({ lock }, use) => use({ lockName: lock.name, kind: kind.kind }),
  });

  describe("payloads", () => {
    test("acquired: waited; released: held", async ({ about, of, lock, events }) => {
      const hold = await lock.lock();
      await new Promise((resolve) => setTimeout(resolve, 60));
      await hold.unlock();
      const mine = { ...about, ownerId: hold.ownerId };
      expect(events).toEqual([
        { name: "acquired", payload: { ...mine, waited: expect.any(Number), nested: false } },
        { name: "released", payload: { ...mine, held: expect.any(Number) } },
      ]);
      expect(of("acquired")[0]?.waited).toBeGreaterThanOrEqual(0);
      expect(of("acquired")[0]?.waited).toBeLessThan(SLACK);
      expect(of("released")[0]?.held).toBeGreaterThanOrEqual(50);
      expect(of("released")[0]?.held).toBeLessThan(SLACK);
    });

    test("waiting, and what was waited counts from the call", async ({
      of,
      about,
      client,
      lock,
      excluded,
    }) => {
      const hold = await lock.lock({ lease: 60_000 });
      const waiter = await untilWaiting(client, () => excluded.lock());
      await new Promise((resolve) => setTimeout(resolve, 80));
      await hold.unlock();
      const second = await waiter.done;
      expect(of("waiting")).toEqual([{ ...about, ownerId: second.ownerId }]);
      expect(of("acquired")[1]).toMatchObject({ ...about, ownerId: second.ownerId });
      expect(of("acquired")[1]?.waited).toBeGreaterThanOrEqual(70);
      await second.unlock();
    });

    test("each hold has its own, nested ones too, and of a run", async ({ of, client, lock }) => {
      await client.scope(async () => {
        await lock.lock();
        await lock.run(() => lock.tryLock());
        await lock.unlock();
        await lock.unlock();
      });
      expect(of("acquired")).toHaveLength(3);
      expect(of("released")).toHaveLength(3);
      expect(new Set(of("acquired").map(({ ownerId }) => ownerId)).size).toBe(1);
      expect(of("waiting")).toEqual([]);
    });

    test("a try that is refused at once announces that alone", async ({ about, lock, excluded, events }) => {
      const hold = await lock.lock({ lease: 60_000 });
      events.length = 0;
      expect(await excluded.tryLock()).toBeNull();
      const refused = { ...about, ownerId: expect.any(String) };
      expect(events).toEqual([{ name: "rejected", payload: refused }]);
      await hold.unlock();
    });

    test("renewed", async ({ of, about, lock }) => {
      const hold = await lock.lock();
      await until("renewals", () => of("renewed").length >= 2);
      expect(of("renewed")[0]).toEqual({ ...about, ownerId: hold.ownerId });
      await hold.unlock();
    });

    test("a hold with a lease is never renewed", async ({ of, lock }) => {
      const hold = await lock.lock({ lease: 3_000 }); // longer than a renewal interval
      await until("it is lost", () => hold.signal.aborted);
      expect(of("renewed")).toEqual([]);
    });

    test("suspended: cause; then lost: unreachable", async ({ of, about, lock, proxy }) => {
      const hold = await lock.lock();
      proxy.blackhole();
      await until("lost", () => of("lost").length > 0);
      const mine = { ...about, ownerId: hold.ownerId };
      expect(of("suspended")[0]).toEqual({
        ...mine,
        cause: expect.objectContaining({ code: "UNAVAILABLE" }),
      });
      expect(of("lost")).toEqual([{ ...mine, reason: "unreachable", held: expect.any(Number) }]);
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
    });

    test("lost: unreachable, also when the renewal has not even timed out by then", async ({
      lockName,
      proxy,
    }) => {
      await using patient = new LockClient(connectionLike(proxy.connect()), {
        watchdogTimeout: 3_000,
        ...UNHURRIED,
      });
      const hold = await kind.make(patient, lockName).lock();
      expect(hold.isHeld).toBe(true);
      proxy.blackhole();
      await until("lost", () => hold.signal.aborted);
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
      proxy.restore();
    });

    test.for<[reason: string, act: (wire: Wire, lock: Lock) => Promise<unknown>]>([
      ["expired", (wire) => wire.wipe()],
      ["taken", (wire) => wire.seize()],
      ["forced", (_, lock) => lock.forceUnlock()],
    ])("lost: %s", async ([reason, act], { of, about, lock, wire }) => {
      const hold = await lock.lock();
      await act(wire, lock);
      await until("lost", () => of("lost").length > 0);
      expect(of("lost")).toEqual([{ ...about, ownerId: hold.ownerId, reason, held: expect.any(Number) }]);
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason });
      await failure(hold.unlock());
      expect(of("lost")).toHaveLength(1);
      expect(of("released")).toEqual([]);
    });

    test("error: cause, and what it is about", async ({ of, about, lock, proxy }) => {
      const owner = await runAtLast(lock, (hold) => {
        proxy.blackhole();
        return hold.ownerId;
      });
      await until("error", () => of("error").length > 0);
      const cause = expect.objectContaining({ code: "UNAVAILABLE" });
      expect(of("error")[0]).toEqual({ ...about, ownerId: owner, cause });
    });
  });

  describe("listeners", () => {
    test("an unheard error throws nothing", async ({ other, proxy }) => {
      await using quiet = new LockClient(connectionLike(proxy.connect()), {
        watchdogTimeout: 3_600,
        commandTimeout: 1_000,
      });
      await until("Redis answers", () => quiet.ready().then(() => true));
      const result = await runAtLast(kind.make(quiet, other.name), () => {
        proxy.blackhole();
        return "done";
      });
      expect(result).toBe("done");
      proxy.restore();
    });

    test("one that throws disturbs no lock", async ({ client, lock, excluded, wire }) => {
      const thrown: string[] = [];
      for (const name of EVENTS) {
        client.on(name, () => {
          thrown.push(name);
          throw new Error(`of the ${name} listener`);
        });
      }
      const hold = await lock.lock();
      const waiter = excluded.lock();
      await until("it waits", () => thrown.includes("waiting"));
      await until("renewals go on", () => thrown.filter((name) => name === "renewed").length >= 2);
      await hold.unlock();
      const second = await waiter;
      await wire.wipe();
      await until("the loss is noticed", () => second.signal.aborted);
      expect(await failure(second.unlock())).toMatchObject({ code: "LOCK_LOST" });
      expect(await lock.run(() => "fine")).toBe("fine");
      expect(new Set(thrown)).toEqual(new Set(["acquired", "waiting", "renewed", "released", "lost"]));
    });

    test("one that throws does not disturb the signal's listeners, nor they it", async ({
      of,
      client,
      lock,
    }) => {
      client.on("lost", () => {
        throw new Error("of the listener");
      });
      const hold = await lock.lock();
      const aborted = new Promise((resolve) => hold.signal.addEventListener("abort", resolve));
      await lock.forceUnlock();
      await aborted;
      expect(of("lost")).toHaveLength(1);
    });

    test("on, once and off; each returns the client", async ({ client, lock }) => {
      let heard = 0;
      const listener = () => void heard++;
      expect(client.on("acquired", listener)).toBe(client);
      await (await lock.lock()).unlock();
      expect(client.off("acquired", listener)).toBe(client);
      expect(client.once("acquired", listener)).toBe(client);
      await (await lock.lock()).unlock();
      await (await lock.lock()).unlock();
      expect(heard).toBe(2);
    });

    test("acquired comes no later than the call's result, released no later than unlock's", async ({
      of,
      lock,
    }) => {
      const hold = await lock.lock();
      expect(of("acquired")).toHaveLength(1);
      await hold.unlock();
      expect(of("released")).toHaveLength(1);
    });

    test("those of one client hear nothing of another's locks", async ({ redis, lockName, events }) => {
      await using other = new LockClient(connectionLike(redis));
      const heard = nextEvent(other, "acquired");
      await (await kind.make(other, lockName).lock()).unlock();
      await heard;
      expect(events).toEqual([]);
    });
  });
});
