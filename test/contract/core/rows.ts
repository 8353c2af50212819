/**
 * The core of the contract on any connection: what must hold through a cluster, Sentinels or another client as on one server.
 * The rows use the public interface alone, so they need no access to the server. Every other time that could wake a waiter is
 * long, so a waiter that is woken soon was woken by a message.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  type Hold,
  type Lock,
  LockClient,
  type LockClientOptions,
  type RedisConnection,
} from "../../../src/index.js";
import { failure } from "../../support/outcome.js";
import { UNHURRIED } from "../../support/patience.js";
import { type Kind, PLAIN } from "../../support/place/kinds.js";
import { until } from "../../support/until.js";
import { untilWaiting } from "../helpers.js";

/** A way to Redis. */
export interface Way {
  readonly title: string;
  /** Makes a connection at each call, which ends with its server or is `kept`. */
  connect(): RedisConnection;
  readonly options?: LockClientOptions;
  /** Endings of names; default none. On a cluster they decide about slots and channels. */
  readonly endings?: readonly string[];
  /** Default: a lock. Where scripts or rights differ the read side too, whose keys are more. */
  readonly kinds?: readonly Kind[];
  /** Why the way cannot be gone here. */
  readonly missing?: string | undefined;
}

/** Times so long that only a message wakes a waiter soon. */
const FAR: LockClientOptions = { ...UNHURRIED, pollCap: 60_000, watchdogTimeout: 60_000 };
/** Milliseconds: much shorter than the times of FAR, and much longer than a message takes on a busy machine. */
const SOON = 10_000;
/** Milliseconds of a wait that runs out; a shorter one could end without an answer on a busy machine. */
const LITTLE = 2_000;
/** Milliseconds of a watchdog that renews a hold even if the process stands still for eight seconds. */
const KEPT = 12_000;

let names = 0;
const opened: { disconnect?(): unknown; destroy?(): unknown }[] = [];

/** A user's connection for a way, which ends after the rows of its file. */
export function kept<T extends object>(client: T): T {
  (client as { on(event: string, listener: () => void): void }).on("error", () => {});
  opened.push(client);
  return client;
}

/** Defines the rows for each way and kind, and runs these side by side, since each waits for a lease to be over. */
export function coreRows(ways: readonly Way[]): void {
  vi.setConfig({ maxConcurrency: 20 }); // a row waits most of its time
  afterAll(() => {
    for (const each of opened.splice(0)) (each.disconnect ?? each.destroy)?.call(each);
  });
  const each = ways.flatMap((way) => (way.kinds ?? [PLAIN]).map((kind) => ({ way, kind, title: way.title })));
  describe.concurrent.each(each)("$title", ({ way, kind }) => {
    if (way.missing === undefined) describe.sequential(kind.name, () => rowsOf(kind, way));
    else test("keeps the core of the contract", ({ skip }) => skip(way.missing));
  });
}

interface Scene {
  readonly ours: LockClient;
  readonly theirs: LockClient;
  readonly lock: Lock;
  /** The lock that excludes `lock`, by our client and by theirs. */
  readonly excluded: Lock;
  readonly rival: Lock;
  /** The same lock as `lock`, by their client. */
  readonly twin: Lock;
}

function rowsOf(kind: Kind, { connect, options, endings = [""] }: Way): void {
  const clients: LockClient[] = [];
  const open = (more: LockClientOptions = FAR): LockClient => {
    const client = new LockClient(connect(), { ...more, ...options });
    clients.push(client);
    return client;
  };
  let ours: LockClient;
  let theirs: LockClient;
  const scene = (mine = ours, ending = ""): Scene => {
    const name = `core-${++names}.${ending}`;
    return {
      ours: mine,
      theirs,
      lock: kind.make([mine], name),
      excluded: kind.rival.make([mine], name),
      rival: kind.rival.make([theirs], name),
      twin: kind.make([theirs], name),
    };
  };
  let kept: { scene: Scene; hold: Hold; began: number; renewals: number; lost: unknown };

  beforeAll(async () => {
    [ours, theirs] = [open(), open()];
    for (const client of [ours, theirs])
      await until("the client is warm", () =>
        cycle(kind.make([client], `core-${++names}.`)).then(() => true),
      );
    // Before all rows, which take about as long as its lease.
    const renewing = scene(open({ ...FAR, watchdogTimeout: KEPT }));
    const began = performance.now();
    kept = { scene: renewing, hold: await renewing.lock.lock(), began, renewals: 0, lost: undefined };
    renewing.ours.on("renewed", () => void kept.renewals++);
    renewing.ours.on("lost", (told) => {
      kept.lost = told;
    });
  });
  afterAll(() => Promise.all(clients.map((client) => client.close({ timeout: 0 }))));

  test("a lock is granted, seen by all, kept from others, and given back", async () => {
    const { lock, rival, twin } = scene();
    expect(await lock.isLocked()).toBe(false);
    expect(await twin.remainTimeToLive()).toBe(-2);
    const hold = await lock.lock({ lease: 30_000 });
    expect(await twin.isLocked()).toBe(true);
    const ttl = await twin.remainTimeToLive();
    expect([ttl > 1_000, ttl <= 30_000]).toEqual([true, true]);
    expect(await rival.tryLock()).toBeNull();
    await hold.extend(50_000);
    expect(await twin.remainTimeToLive()).toBeGreaterThan(30_000);
    await hold.unlock();
    expect(await twin.isLocked()).toBe(false);
    await expect(hold.extend(1_000)).rejects.toMatchObject({ code: "NOT_OWNER" });
    await cycle(rival);
    expect(await lock.remainTimeToLive()).toBe(-2);
  });

  test("a scope re-enters, and gives back as often as it took", async () => {
    const { ours, lock, rival, twin } = scene();
    await ours.scope(async () => {
      const outer = await lock.lock();
      const inner = await lock.tryLock();
      expect(inner?.ownerId).toBe(outer.ownerId);
      expect(await lock.getHoldCount()).toBe(2);
      await expect(twin.unlock()).rejects.toMatchObject({ code: "NOT_OWNER" });
      await lock.unlock();
      expect(await rival.tryLock()).toBeNull();
      await lock.unlock();
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
    });
    await cycle(rival);
  });

  test("no update is lost, and who holds the lock sees none, whoever of both clients works", async () => {
    const { lock, twin, excluded, rival } = scene();
    let count = 0;
    const increment = async (): Promise<void> => {
      const read = count;
      await lock.isLocked(); // long enough for others to come in between
      count = read + 1;
    };
    const look = async (): Promise<void> => {
      const read = count;
      await lock.isLocked();
      expect(count).toBe(read);
    };
    const work = async (writes: Lock, reads: Lock): Promise<void> => {
      for (let i = 0; i < 5; i++) {
        await writes.run(increment);
        await reads.run(look);
      }
    };
    await Promise.all([work(excluded, lock), work(rival, twin), work(excluded, lock), work(rival, twin)]);
    expect(count).toBe(20);
  });

  test("a waiter is woken by the message of the release, in either client", async () => {
    for (const { ours, theirs, lock, rival } of endings.map((ending) => scene(undefined, ending))) {
      for (const [holder, waiter, client] of [[rival, lock, ours] as const, [lock, rival, theirs] as const]) {
        const hold = await holder.lock();
        const waiting = await untilWaiting(client, () => waiter.lock());
        const began = performance.now();
        await hold.unlock();
        const mine = await waiting.done;
        expect(performance.now() - began).toBeLessThan(SOON);
        await mine.unlock();
      }
    }
  });

  test("a wait that runs out and one that is aborted leave nothing behind", async () => {
    const { ours, lock, rival } = scene();
    const hold = await rival.lock();
    await Promise.all([
      expect(lock.lock({ wait: LITTLE })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" }),
      expect(lock.tryLock(LITTLE)).resolves.toBeNull(),
    ]);
    const controller = new AbortController();
    const { done } = await untilWaiting(ours, () => lock.lock({ signal: controller.signal }));
    controller.abort(new Error("enough"));
    expect((await failure(done)).message).toBe("enough");
    await hold.unlock();
    await (await until("nobody is in the way", () => rival.tryLock()))?.unlock();
  });

  test("a hold whose deadline passes is lost here first, and the lock goes to the next one", async () => {
    const { lock, rival } = scene();
    const hold = await until("a grant arrives within its lease", () => lock.lock({ lease: LITTLE }));
    const next = await rival.lock();
    expect(hold.isHeld).toBe(false);
    await until("the signal tells", () => hold.signal.aborted);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(next.isHeld).toBe(true);
    await next.unlock();
  });

  test("force gives the lock to the next one, and the holder learns that it lost it", async () => {
    const { theirs, lock, twin, rival } = scene();
    const hold = await lock.lock();
    const { done } = await untilWaiting(theirs, () => rival.lock());
    expect(await twin.forceUnlock()).toBe(true);
    const next = await done;
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(next.isHeld).toBe(true);
    await next.unlock();
    expect(await twin.forceUnlock()).toBe(false);
  });

  test("a client that closes gives back what it holds, and rejects who waits", async () => {
    const mine = open();
    const { theirs, lock, rival } = scene(mine);
    const hold = await lock.lock();
    const { done } = await untilWaiting(theirs, () => rival.lock());
    const other = scene(mine);
    const taken = await other.rival.lock();
    const stranded = await untilWaiting(mine, () => other.lock.lock());
    const ended = failure(stranded.done);
    await mine.close({ timeout: 0 });
    expect(await ended).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(hold.isHeld).toBe(false);
    await (await done).unlock();
    await taken.unlock();
  });

  test("the watchdog keeps a hold beyond its lease", async () => {
    const { hold, began, scene: mine } = kept;
    expect(await mine.lock.remainTimeToLive()).toBeLessThanOrEqual(KEPT);
    // By the client's clock too, because the server's clock may be another one, and ahead.
    const isOver = () => performance.now() - began > KEPT && kept.renewals > 1 && hold.remaining > 0;
    await until("a lease is over", () => isOver() || kept.lost !== undefined);
    expect(kept.lost).toBeUndefined();
    expect(await mine.rival.tryLock()).toBeNull();
    await hold.unlock();
    await cycle(mine.rival);
  });
}

async function cycle(lock: Lock): Promise<void> {
  await (await lock.lock()).unlock();
}
