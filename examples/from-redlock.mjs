// Coming from redlock (versions 4 and 5): the old code in comments, the new code beside it, running; then how to change over
// while old and new processes run side by side.
//
//   node examples/from-redlock.mjs
//
// The package redlock is not needed here. On the wire its lock is a string, `SET name random NX PX ttl` in effect; that
// stands for it below. This library's lock is a hash, so the two must not have the same name; and with different names they
// do not exclude each other.
// The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isLockError, LockClient, MultiLock } from "holdfast";
import { Redis } from "ioredis";
import { killAll } from "./children.mjs";
import { startServer } from "./server.mjs";

const { port } = await startServer();
const redis = new Redis(port);
const send = async () => "sent";

// --- The calls -------------------------------------------------------------------------------------------------------

//   const redlock = new Redlock([redis]);
const client = new LockClient(redis, { prefix: "lock" }); // the prefix keeps the names apart, see below
// With three or more masters: new RedLock(...clients.map((client) => client.getLock(name))), see redlock.mjs.

//   const lock = await redlock.acquire(["invoice:7"], 5_000);       v4: redlock.lock("invoice:7", 5_000)
//   try { await send(); } finally { await lock.release(); }         v4: lock.unlock()
// By default redlock tries eleven times in two seconds and gives up; here a waiter is woken by message, and `wait` is the limit.
const hold = await client.getLock("invoice:7").lock({ wait: 2_000, lease: 5_000 });
try {
  await send();
  //   lock = await lock.extend(5_000);                              a new object, which has to be kept
  await hold.extend(5_000);
  assert.ok(hold.remaining > 4_000);
} finally {
  await hold.unlock();
}

//   await redlock.using(["invoice:7"], 5_000, async (signal) => {
//     await send();
//     if (signal.aborted) throw signal.error;
//   });
// Without a lease the watchdog renews; run() gives back, and rejects with LOCK_LOST if the lock was lost meanwhile.
const result = await client.getLock("invoice:7").run(
  async (hold) => {
    const answer = await send();
    hold.assertHeld(); // looks at the clock; a signal can not fire while the event loop stands
    return answer;
  },
  { wait: 2_000 },
);
assert.equal(result, "sent");

//   await redlock.acquire(["account:1", "account:2"], 5_000);       on a cluster only within one slot
await new MultiLock(client.getLock("account:1"), client.getLock("account:2")).run(send);

//   catch (error) { if (error instanceof ExecutionError) … }        v4: LockError; also if Redis was not reached
const other = new LockClient(redis, { prefix: "lock" });
const busy = await other.getLock("invoice:7").lock();
const refusal = await client
  .getLock("invoice:7")
  .run(send, { wait: 500 })
  .catch((error) => error);
assert.ok(isLockError(refusal, "WAIT_TIMEOUT")); // UNAVAILABLE: Redis was not reached
assert.equal(await client.getLock("invoice:7").tryLock(), null); // one try
await busy.unlock();
console.log("the calls: acquire, extend, using, several resources, errors");

// --- The same name ---------------------------------------------------------------------------------------------------

/** Tries to take what redlock would take. The value is what only its taker knows. */
async function redlockTries(name, ttl) {
  const value = randomUUID();
  return (await redis.set(name, value, "PX", ttl, "NX")) ? value : null;
}
/** As redlock's script does: only its taker's. */
async function redlockReleases(name, value) {
  const script = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0";
  await redis.eval(script, 1, name, value);
}

const bare = new LockClient(redis); // without a prefix
const value = await redlockTries("invoice:8", 5_000);
const clash = await bare
  .getLock("invoice:8")
  .lock()
  .catch((error) => error);
assert.ok(isLockError(clash, "WRONG_DATA"), `the same name: ${clash}`);
assert.equal(await redis.get("invoice:8"), value, "redlock's lock was left alone");
console.log("the same name:", clash.code, "-", clash.message);

const beside = await client.getLock("invoice:8").lock(); // the key is lock:invoice:8
assert.equal(await redis.type("lock:invoice:8"), "hash");
await beside.unlock();
await redlockReleases("invoice:8", value);
console.log("with a prefix: no clash; but no exclusion either");

// --- Side by side ----------------------------------------------------------------------------------------------------

// Three versions of your service, rolled out one after the other. Each excludes the one before it and the one after it:
//
//   old      takes redlock's lock
//   bridge   takes redlock's lock, and then this library's. The order is always the same, so nobody waits in a circle
//   new      takes this library's lock
//
// Old and new do not exclude each other: roll out `new` when the last `old` has gone.
const TTL = 5_000;

async function old(work) {
  for (;;) {
    const value = await redlockTries("stock", TTL);
    if (value === null) {
      await sleep(1); // redlock itself polls every 200 ms
      continue;
    }
    try {
      return await work();
    } finally {
      await redlockReleases("stock", value);
    }
  }
}

const fresh = (work) => client.getLock("stock").run(work);

// redlock's lock is not renewed here, so waiting and work must be done before its TTL ends, as they had to before.
const bridge = (work) => old(() => client.getLock("stock").run(work, { wait: TTL / 2 }));

/** Reads, does something else, writes: two at a time would lose a sale. */
async function sell() {
  const sold = Number(await redis.get("sold"));
  await sleep(1);
  await redis.set("sold", sold + 1);
}

/** So many processes of each version, selling at the same time. */
async function rollOut(...versions) {
  await redis.set("sold", 0);
  const each = 20;
  await Promise.all(
    versions.map(async (version) => {
      for (let i = 0; i < each; i++) await version(sell);
    }),
  );
  assert.equal(Number(await redis.get("sold")), each * versions.length, "a sale was lost");
}

await rollOut(old, bridge);
console.log("old and bridge side by side: no sale lost");
await rollOut(bridge, fresh);
console.log("bridge and new side by side: no sale lost");

await Promise.all([client, other, bare].map((each) => each.close()));
redis.disconnect();
await killAll();
