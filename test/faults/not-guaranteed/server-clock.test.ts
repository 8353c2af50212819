/**
 * Produces what is not guaranteed: the wall clock of Redis, by which it counts leases, is moved. Forward, a lock
 * expires under its holder and a second owner gets it; back, the lock of a dead holder stays. The tokens rise all the
 * same.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FencedHold, LockClient, type MultiHold, RedLock } from "../../../src/index.js";
import { failure, nextEvent } from "../../contract/helpers.js";
import {
  MovableClock,
  noMovableClock,
  type RedisServer,
  STEADY,
  startRedis,
  UNHURRIED,
} from "../../support/index.js";
import { failOnUnhandledRejections } from "../harness.js";
import { Resource } from "./resource.js";

const HOUR = 3_600_000;
const LEASE = 600_000;

failOnUnhandledRejections();

describe.skipIf(noMovableClock)(
  `the clock of Redis${noMovableClock ? `: skipped, ${noMovableClock}` : ""}`,
  () => {
    const clocks: MovableClock[] = [];
    const servers: RedisServer[] = [];
    const clients: LockClient[] = [];
    beforeEach(async () => {
      for (let i = 0; i < 3; i++) {
        const clock = await MovableClock.create();
        clocks.push(clock);
        servers.push(await startRedis({ clock }));
      }
    });
    afterEach(async () => {
      await Promise.all(clients.splice(0).map((client) => client.close({ timeout: 0 })));
      await Promise.all(servers.splice(0).map((server) => server.stop()));
      await Promise.all(clocks.splice(0).map((clock) => clock[Symbol.asyncDispose]()));
    });

    function connect(i: number, watchdogTimeout = LEASE): LockClient {
      const [server] = servers.slice(i);
      if (server === undefined) throw new Error(`no server ${i}`);
      const client = new LockClient(server.connect(), { ...UNHURRIED, watchdogTimeout });
      clients.push(client);
      return client;
    }

    const step = (i: number, ms: number) => clocks[i]?.step(ms);

    test("steps forward: two hold the lock, the first is told by its next command, and the fence refuses its write [F30]", async () => {
      const resource = new Resource();
      const [ours, theirs] = [connect(0).getFencedLock("order"), connect(0).getFencedLock("order")];
      const first = await ours.lock({ lease: LEASE });
      await step(0, HOUR);
      const second = await theirs.lock();
      expect([first.isHeld, second.isHeld]).toEqual([true, true]);
      expect(second.token).toBeGreaterThan(first.token);

      expect(resource.write("second", second)).toBe(true);
      expect(resource.write("first", first)).toBe(false);
      expect([resource.unfenced, resource.fenced]).toEqual(["first", "second"]);
      expect(await failure(first.extend(LEASE))).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
      expect([first.isHeld, first.signal.aborted, second.isHeld]).toEqual([false, true, true]);
      await second.unlock();
    });

    test("steps forward under a hold that is renewed: the next renewal tells of the loss [F30]", async () => {
      const client = connect(0, STEADY);
      const hold = await client.getLock("order").lock();
      const told = nextEvent(client, "lost");
      await step(0, HOUR);
      expect(await told).toMatchObject({ lockName: "order", reason: "expired" });
      expect([hold.isHeld, hold.signal.aborted]).toEqual([false, true]);
    });

    test("steps back: a dead holder's lock stays for the step and its lease, until it is forced; tokens rise [F30]", async () => {
      const [dead, client] = [connect(0), connect(0)];
      const first = await dead.getFencedLock("order").lock({ lease: 60_000 });
      await step(0, -HOUR);
      const lock = client.getFencedLock("order");
      expect(await lock.remainTimeToLive()).toBeGreaterThan(HOUR);
      expect(await lock.tryLock()).toBeNull();
      expect(first.remaining).toBeLessThanOrEqual(60_000); // the holder itself counts on no more than it asked for
      expect(await lock.forceUnlock()).toBe(true);
      const second = await lock.lock();
      expect(second.token).toBeGreaterThan(first.token);
      await second.unlock();
    });

    /**
     * An owner holds a RedLock of three masters, of which `count` clocks step forward; `theirs` is another's lock.
     */
    async function stepMasters(count: number): Promise<[first: MultiHold, theirs: RedLock]> {
      const group = () =>
        new RedLock(...([0, 1, 2].map((i) => connect(i).getFencedLock("order")) as [never]));
      const [ours, theirs] = [group(), group()];
      const first = await ours.lock({ lease: LEASE });
      for (let i = 0; i < count; i++) await step(i, HOUR);
      return [first, theirs];
    }

    const tokens = ({ members }: MultiHold) => members as FencedHold[];

    test("a minority of a RedLock's masters steps forward: nobody else gets the lock [F41]", async () => {
      const [first, theirs] = await stepMasters(1);
      expect([await theirs.tryLock(0, LEASE), first.isHeld]).toEqual([null, true]);
      await first.unlock();
    });

    test("a majority of a RedLock's masters steps forward: two hold it, and the fence refuses the first [F41]", async () => {
      const [first, theirs] = await stepMasters(2);
      // On a busy machine a master may answer too late to count.
      const second = await theirs.lock({ lease: LEASE });
      expect([first.isHeld, second.isHeld]).toEqual([true, true]);
      const resource = new Resource();
      expect(resource.write("first", ...tokens(first))).toBe(true);
      expect(resource.write("second", ...tokens(second), undefined)).toBe(true);
      expect(resource.write("first, late", ...tokens(first))).toBe(false);
      expect(await failure(first.unlock())).toMatchObject({ code: "LOCK_LOST" });
      expect(second.isHeld).toBe(true);
      await second.unlock();
    });
  },
);
