// Coming from redis-semaphore (versions 4 and 5): the old code in comments, the new code beside it, running; then how to
// change over while old and new processes run side by side.
//
//   node examples/from-redis-semaphore.mjs
//
// The package redis-semaphore is not needed here. On the wire its mutex is a string `mutex:name`, its semaphore a sorted set
// `semaphore:name` of who is in and since when; that stands for it below. They do not exclude, or count, this library's.
// The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isLockError, LockClient } from "holdfast";
import { Redis } from "ioredis";
import { killAll } from "./children.mjs";
import { startServer } from "./server.mjs";

const { port } = await startServer();
const redis = new Redis(port);
const work = async () => "done";

// redis-semaphore puts "mutex:" or "semaphore:" before each name, so a mutex could be called as the key that it guards. Here
// the name is the key: the prefix keeps locks and data apart. `lockTimeout` is the watchdog's lease for all of the client.
const client = new LockClient(redis, { prefix: "lock", watchdogTimeout: 10_000 });

// --- Mutex -----------------------------------------------------------------------------------------------------------

//   const mutex = new Mutex(redis, "report", { lockTimeout: 10_000, acquireTimeout: 10_000, onLockLost });
//   await mutex.acquire();
//   try { await work(); } finally { await mutex.release(); }
const report = client.getLock("report");
assert.equal(await report.run(work, { wait: 10_000 }), "done");

//   onLockLost(error)                          for the log: client.on("lost", …); in the code: hold.signal, hold.assertHeld()
//   mutex.isAcquired                           hold.isHeld
//   TimeoutError                               WAIT_TIMEOUT
//   { refreshInterval: 0 }                     { lease: 10_000 }
//   if (await mutex.tryAcquire()) …            one object for each use; here locks are cheap and holds are the objects:
const losses = [];
client.on("lost", ({ lockName, reason }) => losses.push(`${lockName} ${reason}`));
const hold = await report.tryLock();
assert.equal(await report.tryLock(), null);
await report.forceUnlock();
assert.equal(hold.isHeld, false);
assert.ok(isLockError(hold.signal.reason, "LOCK_LOST"));
assert.deepEqual(losses, ["report forced"]);
console.log("Mutex: acquire, tryAcquire, isAcquired, onLockLost");

// --- Semaphore -------------------------------------------------------------------------------------------------------

//   const mails = new Semaphore(redis, "mails", 5, { lockTimeout: 10_000 });
//   await mails.acquire();
//   try { await work(); } finally { await mails.release(); }
// The limit is in Redis, not in each process, and every permit has an id. Permits of a process that dies come back.
const LIMIT = 5;
const mails = client.getPermitExpirableSemaphore("mails");
await mails.trySetPermits(LIMIT);
const permit = await mails.acquire(); // kept by the watchdog; if it can not be kept, client.on("lost") names its `permitId`
try {
  await work();
} finally {
  await mails.release(permit);
}

//   { identifier, acquiredExternally: true }   an id that has a lease may be given back by another process
const elsewhere = new LockClient(redis, { prefix: "lock" });
const handed = await mails.acquire({ lease: 10_000 });
await elsewhere.getPermitExpirableSemaphore("mails").release(handed);

//   new MultiSemaphore(redis, "mails", 5, 2)   getSemaphore(name).acquire(2): no ids and no leases, see parking-lot.mjs
//   new RedlockMutex([a, b, c], "report")      new RedLock(…), see redlock.mjs; there is no semaphore over many masters
assert.equal(await mails.availablePermits(), LIMIT);
console.log("Semaphore: acquire, release, a permit that another process gives back");

// --- The same names --------------------------------------------------------------------------------------------------

const bare = new LockClient(redis); // without a prefix
await redis.set("mutex:report", "theirs", "PX", 10_000);
await redis.zadd("semaphore:mails", Date.now(), "theirs");
for (const clash of [
  await bare
    .getLock("mutex:report")
    .lock()
    .catch((error) => error),
  await bare
    .getPermitExpirableSemaphore("semaphore:mails")
    .acquire()
    .catch((error) => error),
])
  assert.ok(isLockError(clash, "WRONG_DATA"), `the same name: ${clash}`);
assert.equal(await redis.get("mutex:report"), "theirs");
assert.equal(await redis.zcard("semaphore:mails"), 1);
await redis.del("mutex:report", "semaphore:mails");
console.log("the same names: WRONG_DATA, and nothing is touched");

// --- Side by side: the mutex -----------------------------------------------------------------------------------------

// As told in from-redlock.mjs: first a version that takes the old lock and then the new one, then one that takes only the new.
const OLD_TIMEOUT = 10_000;

async function oldMutex(work) {
  const identifier = randomUUID();
  while (!(await redis.set("mutex:stock", identifier, "PX", OLD_TIMEOUT, "NX"))) await sleep(1);
  try {
    return await work();
  } finally {
    const script = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0";
    await redis.eval(script, 1, "mutex:stock", identifier);
  }
}
const newMutex = (work) => client.getLock("stock").run(work, { wait: OLD_TIMEOUT / 2 });
const bothMutexes = (work) => oldMutex(() => newMutex(work));

/** Reads, does something else, writes: two at a time would lose a sale. */
async function sell() {
  const sold = Number(await redis.get("sold"));
  await sleep(1);
  await redis.set("sold", sold + 1);
}

for (const versions of [
  [oldMutex, bothMutexes],
  [bothMutexes, newMutex],
]) {
  await redis.set("sold", 0);
  await Promise.all(versions.flatMap((version) => Array.from({ length: 20 }, () => version(sell))));
  assert.equal(await redis.get("sold"), "40", "a sale was lost");
}
console.log("mutexes side by side: no sale lost");

// --- Side by side: the semaphore -------------------------------------------------------------------------------------

// Two semaphores do not add up by themselves: share the limit out. The old version is given a lower limit first (that is a
// release of its own, since the limit is in its code), the new one the rest, and all of it when the last old one has gone.
const OLD_SHARE = 3;
const NEW_SHARE = LIMIT - OLD_SHARE;

/** Who is in is a member of the set, by when he came. As redis-semaphore does it, in one script. */
const ENTER = `
  redis.call('zremrangebyscore', KEYS[1], '-inf', ARGV[2] - ARGV[3])
  if redis.call('zcard', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
  return redis.call('zadd', KEYS[1], ARGV[2], ARGV[1])`;

async function oldSemaphore(work) {
  const id = randomUUID();
  while (!(await redis.eval(ENTER, 1, "semaphore:mails", id, Date.now(), OLD_TIMEOUT, OLD_SHARE)))
    await sleep(1);
  try {
    return await work();
  } finally {
    await redis.zrem("semaphore:mails", id);
  }
}

async function newSemaphore(work) {
  const permit = await mails.acquire();
  try {
    return await work();
  } finally {
    await mails.release(permit);
  }
}

/** Resolves with the most that were in at once. */
async function most(...versions) {
  const counts = versions.flatMap((version) =>
    Array.from({ length: 20 }, () =>
      version(async () => {
        const inside = await redis.incr("inside");
        await sleep(2);
        await redis.decr("inside");
        return inside;
      }),
    ),
  );
  return Math.max(...(await Promise.all(counts)));
}

await mails.setPermits(NEW_SHARE);
const together = await most(oldSemaphore, newSemaphore);
assert.ok(together <= LIMIT, `more than the limit: ${together}`);
await mails.setPermits(LIMIT); // the last old one has gone
const alone = await most(newSemaphore);
assert.ok(alone <= LIMIT, `more than the limit: ${alone}`);
console.log(`semaphores side by side: at most ${together} of ${LIMIT}, and later ${alone}`);

await Promise.all([client, elsewhere, bare].map((each) => each.close()));
redis.disconnect();
await killAll();
