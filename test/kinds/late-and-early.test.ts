/** Interleavings that once went wrong: answers on their way, copies that come late, clocks that are ahead of timers. */
import { expect, test } from "vitest";
import { waitingWriters, writeField } from "../../src/base/names.js";
import { type Hold, isLockError, type Lock, LockClient, type LockClientOptions } from "../../src/index.js";
import { lockRelease, lockRenew, readRenew, writeAcquire } from "../../src/scripts/generated.js";
import { encode } from "../../src/scripts/script.js";
import { untilWaiting } from "../contract/helpers.js";
import { atLast } from "../faults/harness.js";
import {
  connectionLike,
  type FaultProxy,
  forFile,
  forTest,
  type RedisServer,
  startProxy,
  startRedis,
  UNHURRIED,
  until,
} from "../support/index.js";

let names = 0;

const server = await forFile(startRedis());
const proxy = await forFile(startProxy(server));

function connect(options: LockClientOptions = {}, through: RedisServer | FaultProxy = server): LockClient {
  return forTest(new LockClient(connectionLike(through.connect()), { ...UNHURRIED, ...options }));
}

/** Matches the commands that run this script. */
function runs({ modern, legacy }: Pick<typeof lockRenew, "modern" | "legacy">) {
  const { sha1, text } = server.hasFeaturesOf("7.0.0") ? modern : legacy;
  return (command: readonly string[]) => command.includes(sha1) || command.includes(text);
}

const freshName = (): string => `name ${++names}`;

/** Stalls the event loop for that many milliseconds. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function ttlOf(name: string): Promise<number> {
  return Number(await server.call("PTTL", name));
}

test.each<[string, (client: LockClient, name: string) => Lock, Parameters<typeof runs>[0]]>([
  ["the lock", (client, name) => client.getLock(name), lockRenew],
  ["the read side", (client, name) => client.getReadWriteLock(name).readLock(), readRenew],
])(
  "a nested release while a renewal is answered leaves no less than the holder will believe: %s [B1]",
  async (_, make, renew) => {
    const client = connect({ watchdogTimeout: 6_000 }, proxy);
    const name = freshName();
    const outer = await make(client, name).lock();
    const inner = await make(client, name).lock({ owner: outer });
    const renewed = new Promise((resolve) => client.once("renewed", resolve));
    proxy.clear();
    proxy.delayReplies(300, runs(renew));
    await until("the renewal is on its way", () => proxy.count(runs(renew)) > 0);
    await until("it was executed", async () => (await ttlOf(name)) > 5_500);
    await Promise.all([inner.unlock(), renewed]);
    proxy.restore();
    // The TTL is read before `remaining`, because both fall while the process stands still.
    const ttl = await ttlOf(name);
    expect(ttl).toBeGreaterThan(outer.remaining - 50);
    await outer.unlock();
  },
);

test("a release whose reply is lost while the holds left end was a release all the same [B12]", async () => {
  const client = connect({ commandTimeout: 700 }, proxy);
  const lock = client.getLock(freshName());
  const outer = await atLast(() => lock.lock({ lease: 60_000 }));
  const inner = await atLast(() => lock.lock({ owner: outer, lease: 20_000 }));
  await atLast(() => outer.extend(600));
  const cut = proxy.cutReplyOf(runs(lockRelease));
  const released = inner.unlock().catch((error: unknown) => error);
  await cut.done;
  proxy.refuse();
  await until("the outer hold is over", () => !outer.isHeld);
  await until("so it is on the server", async () => !(await lock.isLocked().catch(() => false)));
  proxy.restore();
  const first = await released;
  if (first !== undefined) expect(isLockError(first, "UNAVAILABLE")).toBe(true);
  await until("it is answered", () => inner.unlock().then(() => true));
});

test("a writer that waits is not passed again and again by a task of its own process", async () => {
  const lock = connect().getReadWriteLock(freshName()).writeLock();
  let rounds = 0;
  let served = false;
  const first = await lock.lock();
  const waiting = lock.run(() => {
    served = true;
  });
  let hold: Hold = first;
  for (; !served && rounds < 50; rounds++) {
    await hold.unlock();
    hold = await lock.lock();
  }
  await hold.unlock();
  await waiting;
  expect(rounds).toBeLessThanOrEqual(3);
});

test("a copy of the writer's acquire that comes after its downgrade marks nobody as a waiting writer", async () => {
  const name = freshName();
  const sides = connect().getReadWriteLock(name);
  const writing = await sides.writeLock().lock();
  const reading = await sides.readLock().lock({ owner: writing });
  await writing.unlock();
  const owner = reading.ownerId;
  const keys = { lock: name, tombstone: `none of ${name}`, writers: waitingWriters(name) };
  const args = { owner, field: writeField(owner), lease: 30_000, aliveFor: 9_000 };
  await server.call("EVAL", ...encode(writeAcquire.legacy.text, writeAcquire, keys, args));
  const other = await connect().getReadWriteLock(name).readLock().tryLock();
  expect(other?.isHeld).toBe(true);
  await Promise.all([other?.unlock(), reading.unlock()]);
});

test("a read lock whose counts say more than there is costs no more to look at than there is [B8]", async () => {
  const name = freshName();
  const reader = (i: number) => `b0e5b1a2-0000-4000-8000-000000000000:${i}`;
  const fields = Array.from({ length: 200 }, (_, i) => [reader(i), "99999"]).flat();
  await server.call("HSET", name, "mode", "read", ...fields);
  await server.call("PEXPIRE", name, 60_000);
  const client = connect();
  const sides = client.getReadWriteLock(name);
  await server.call("CONFIG", "RESETSTAT");
  expect(await sides.writeLock().tryLock()).toBeNull();
  expect(await sides.readLock().isLocked()).toBe(true);
  expect(await client.inspect(name)).not.toBeNull();
  expect(await sides.readLock().forceUnlock()).toBe(true);
  expect(await server.call("EXISTS", name)).toBe(0);
  const [, looks = "0"] =
    /cmdstat_pttl:calls=(\d+)/.exec(String(await server.call("INFO", "commandstats"))) ?? [];
  expect(Number(looks)).toBeLessThan(60_000);
});

test("waiters keep their order through a stall of Redis while the lock is held", async () => {
  const name = freshName();
  const own = forTest(await startRedis());
  const another = () => connect({ pollCap: 200 }, own);
  const [first, second, holder] = [another(), another(), another()];
  const hold = await holder.getFairLock(name).lock();
  const order: string[] = [];
  const wait = (client: LockClient, letter: string) =>
    untilWaiting(client, () => client.getFairLock(name).run(() => void order.push(letter)));
  const a = await wait(first, "a");
  const b = await wait(second, "b");
  own.pause();
  // The stall itself is the subject: it lasts longer than a waiter counts as alive. Nothing shows its end, so this
  // sleeps.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  own.resume();
  const words = async () => {
    const scores = (await own.call("ZRANGE", `holdfast_alive:{${name}}`, 0, -1, "WITHSCORES")) as string[];
    return scores.filter((_, i) => i % 2 === 1).map(Number);
  };
  const now = Date.now();
  await until("both were heard of again", async () => (await words()).filter((at) => at > now).length === 2);
  await hold.unlock();
  await Promise.all([a.done, b.done]);
  expect(order).toEqual(["a", "b"]);
  await Promise.all([first, second, holder].map((client) => client.close({ timeout: 0 })));
});

test("a read hold that is over by the clock stands in nobody's way to write", async () => {
  const client = connect();
  // First the connection: the lease counts from when the command is sent.
  await client.ready();
  const sides = client.getReadWriteLock(freshName());
  await client.scope(async () => {
    const read = await sides.readLock().lock({ lease: 3_000 });
    stall(read.remaining + 100);
    const write = await sides.writeLock().lock();
    expect(read.isHeld).toBe(false);
    await write.unlock();
  });
});

test("a writer whose read side was forced away is told so by its next nested call, which gets a hold", async () => {
  const name = freshName();
  const sides = connect().getReadWriteLock(name);
  const write = await sides.writeLock().lock();
  const read = await sides.readLock().lock({ owner: write });
  expect(await connect().getReadWriteLock(name).readLock().forceUnlock()).toBe(true);
  const again = await sides.readLock().lock({ owner: write });
  expect([read.isHeld, again.isHeld, write.isHeld]).toEqual([false, true, true]);
  await again.unlock();
  await write.unlock();
});
