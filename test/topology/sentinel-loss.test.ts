/**
 * Shows what a failover may break: a replica that lags becomes master, and the last writes of the old master are lost.
 * A lost grant means two holders until the first one asks the server. A lost release means that a lock stays locked
 * until its lease is over. Writes that had reached the replica are kept.
 */
import { expect, test } from "vitest";
import { FencedHold, type Hold, type Lock, LockClient, type LockClientOptions } from "../../src/index.js";
import { lost } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, forTest, STEADY, startSentinel, UNHURRIED, until } from "../support/index.js";
import { type Kind, SINGLE } from "../support/place/kinds.js";
import { CALM, makeHasty } from "./sentinel-haste.js";

/** With this nothing is renewed during the test. */
const FAR: LockClientOptions = { ...UNHURRIED, watchdogTimeout: 60_000 };
/** Renewed every nine seconds, so a failover on a busy machine is over before the deadline. */
const RENEWED: LockClientOptions = { ...UNHURRIED, watchdogTimeout: 3 * STEADY };
const PATIENCE = { timeout: 20_000 };

failOnUnhandledRejections();
const all = await forFile(startSentinel({ password: "se:cret", downAfter: CALM }));

function connect(options: LockClientOptions): LockClient {
  return forTest(new LockClient(all.connect({ db: 2 }), options));
}

interface Taken {
  readonly kind: Kind;
  readonly lock: Lock;
  readonly hold: Hold;
}

/** Takes one lock of each kind. */
function takeAll(client: LockClient, name: string): Promise<Taken[]> {
  return Promise.all(
    SINGLE.map(async (kind) => {
      const lock = kind.make([client], `${name} ${kind.name}`);
      return { kind, lock, hold: await lock.lock() };
    }),
  );
}

test("what the replica missed is lost, and the holder is told; what it had is kept [F28]", async () => {
  const [ours, renewing, theirs] = [connect(FAR), connect(RENEWED), connect(FAR)];
  const redis = all.connect({ db: 2 });
  const rivalOf = ({ kind, lock }: Taken): Lock => kind.rival.make([theirs], lock.name);
  const kept = await takeAll(ours, "kept");
  const released = await takeAll(ours, "released");
  await theirs.ready();
  await redis.set("last", 1);
  expect(await redis.wait(1, PATIENCE.timeout)).toBe(1);

  const [master, [replica]] = [await all.master(), await all.replicas()];
  if (replica === undefined) throw new Error("no replica");
  await all.cutOff(replica);
  const forgotten = await takeAll(ours, "forgotten");
  const renewed = await takeAll(renewing, "renewed");
  await Promise.all(released.map(({ hold }) => hold.unlock()));
  const losses = new Map<string, string>();
  renewing.on("lost", ({ lockName, reason }) => losses.set(lockName, reason));
  await makeHasty(all);
  await master.kill();
  replica.resume();
  await all.successor(master);

  for (const taken of forgotten) {
    const next = await rivalOf(taken).lock({ wait: PATIENCE.timeout });
    // Two held it, and neither has done anything wrong; the first one asks as soon as it is connected again.
    await until("the first one is told", () => !taken.hold.isHeld, PATIENCE);
    if (taken.hold instanceof FencedHold) expect(tokenOf(next)).toBeGreaterThan(tokenOf(taken.hold));
    await expect(taken.hold.unlock()).rejects.toMatchObject(lost(taken.lock));
    expect([taken.hold.isHeld, next.isHeld]).toEqual([false, true]);
    expect(await rivalOf(taken).isHeldByCurrentOwner({ owner: next })).toBe(true);
    await next.unlock();
  }
  await until("each renewal has told of the loss", () => losses.size === renewed.length, PATIENCE);
  for (const { lock, hold } of renewed) {
    expect(losses.get(lock.name)).toMatch(/^(expired|taken)$/);
    expect([hold.isHeld, hold.signal.aborted]).toEqual([false, true]);
    await expect(hold.unlock()).rejects.toMatchObject(lost(lock));
  }
  for (const taken of released) {
    // No owner holds it, but no call gets it before the lease is over.
    expect(taken.hold.isHeld).toBe(false);
    expect(await rivalOf(taken).tryLock()).toBeNull();
    const ttl = await taken.lock.remainTimeToLive();
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(60_000);
    expect(await taken.lock.forceUnlock()).toBe(true);
    await (await rivalOf(taken).lock({ wait: PATIENCE.timeout })).unlock();
  }
  for (const taken of kept) {
    expect(await rivalOf(taken).tryLock()).toBeNull();
    await taken.hold.extend(30_000);
    expect(taken.hold.isHeld).toBe(true);
    await taken.hold.unlock();
    await (await rivalOf(taken).lock({ wait: PATIENCE.timeout })).unlock();
  }
});

function tokenOf(hold: Hold): bigint {
  return (hold as FencedHold).token;
}
