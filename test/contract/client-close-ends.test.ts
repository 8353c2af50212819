/** Contract section 1: what close() leaves of connections and timers, and what `await using` ends. */
import { describe, expect } from "vitest";
import { type Lock, LockClient } from "../../src/index.js";
import { connectionLike, named, SLACK, until } from "../support/index.js";
import { connectionsOf, connectionsSince, failure, lost, untilWaiting, warmUp, watch } from "./helpers.js";
import { eachKind, withOwnClient } from "./scene.js";

const CLOSED = { code: "CLIENT_CLOSED", name: "ClientClosedError" };
const lostBy = (lock: Lock): object => ({ ...lost(lock), reason: "closed" });

eachKind("close ends", (base, kind) => {
  const test = withOwnClient(base);

  describe("connections and timers", () => {
    test("own connections are gone; the user's is open and has no listener of ours", async ({
      server,
      client,
      lock,
      excluded,
      mine,
    }) => {
      const listeners = () => mine.eventNames().map((name) => [String(name), mine.listenerCount(name)]);
      const fresh = server.connect();
      await fresh.ping();
      const bare = fresh.eventNames().map((name) => [String(name), fresh.listenerCount(name)]);
      fresh.disconnect();
      const before = await connectionsOf(server);
      const hold = await lock.lock();
      const waiter = await untilWaiting(client, () => excluded.lock());
      await until("it listens", async () =>
        (await connectionsOf(server)).some(({ subscribed }) => subscribed > 0),
      );
      await client.close({ timeout: 0 });
      await failure(waiter.done);
      await until(
        "only the user's are left",
        async () => (await connectionsSince(before, server)).length === 0,
      );
      expect(listeners()).toEqual(bare);
      expect(mine.status).toBe("ready");
      expect(await mine.ping()).toBe("PONG");
      expect(hold.isHeld).toBe(false);
    });

    test("close ends though Redis does not answer", async ({ lock, through }) => {
      const { proxy, client, mine } = await through({ commandTimeout: 600 });
      const hold = await until("it is taken", () => mine.lock({ lease: 60_000 }));
      proxy.blackhole();
      const began = performance.now();
      await client.close({ timeout: 50 });
      expect(performance.now() - began).toBeLessThan(SLACK);
      expect(hold.signal.reason).toMatchObject(lostBy(lock));
      await hold.unlock();
    });

    test("close ends though Redis was never reached", async ({ lockName }) => {
      const nobody = LockClient.connect({ host: "127.0.0.1", port: 1 }, { commandTimeout: 100 });
      const calling = kind.make(nobody, lockName).lock();
      watch(calling);
      await nobody.close();
      expect(await failure(calling)).toBeInstanceOf(Error);
    });

    test("unlocks on their way are waited for", async ({ wire, through }) => {
      const { proxy, client, mine } = await through();
      const hold = await mine.lock();
      proxy.delayReplies(150, named("EVAL", "EVALSHA"));
      const unlocking = hold.unlock();
      await client.close({ timeout: 0 });
      await unlocking;
      expect(await wire.keys()).toEqual([]);
      expect(hold.signal.aborted).toBe(false);
    });
  });

  describe("await using", () => {
    test("ends a client", async ({ lockName, mine }) => {
      let kept: LockClient;
      {
        await using disposed = new LockClient(connectionLike(mine));
        kept = disposed;
        await warmUp(kind.make(disposed, lockName));
      }
      expect(await failure(kind.make(kept, lockName).lock())).toMatchObject(CLOSED);
    });

    test("gives a hold back, with the errors of unlock", async ({ lock, wire }) => {
      {
        await using hold = await lock.lock();
        expect(hold.isHeld).toBe(true);
      }
      expect(await wire.keys()).toEqual([]);
      const error = await failure(async () => {
        await using hold = await lock.lock();
        await wire.wipe();
        expect(hold.isHeld).toBe(true);
      });
      expect(error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    });

    test("of null, which tryLock may give", async ({ lock, excluded }) => {
      const hold = await lock.lock();
      {
        await using none = await excluded.tryLock();
        expect(none).toBeNull();
      }
      await hold.unlock();
    });
  });
});
