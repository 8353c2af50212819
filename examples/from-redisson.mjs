// Coming from Redisson, or sharing locks with Java processes that use it: the Java code in comments, the new code beside
// it, running; what is in Redis; how the two sides wait for each other; and what differs.
//
//   node examples/from-redisson.mjs
//
// There is no Java here: what a Java process would write to Redis is written by hand. Both sides must use the same kind of
// lock under the same name, and the same Redis; the codec of the Java side does not matter.
// The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import { isLockError, LockClient } from "holdfast";
import { Redis } from "ioredis";
import { killAll } from "./children.mjs";
import { startServer } from "./server.mjs";

const { port } = await startServer();
const redis = new Redis(port);
const work = async () => "done";

// --- The calls -------------------------------------------------------------------------------------------------------

//   RedissonClient redisson = Redisson.create(config);      config.setLockWatchdogTimeout(30_000) is the default here too
//   RLock lock = redisson.getLock("stock");                 a NameMapper that adds "shop:" is { prefix: "shop" }
const client = new LockClient(redis, { pollCap: 30_000 }); // so that below only a message can wake anybody
const lock = client.getLock("stock");

//   lock.lock();
//   try { work(); } finally { lock.unlock(); }
// Node has no threads: a scope is one. Within it lock() re-enters, and unlock() knows whose hold to give back.
await client.scope(async () => {
  await lock.lock();
  try {
    await lock.lock();
    assert.equal(await lock.getHoldCount(), 2);
    assert.equal(await lock.isHeldByCurrentOwner(), true); // isHeldByCurrentThread()
    await lock.unlock();
    await work();
  } finally {
    await lock.unlock();
  }
});

//   if (lock.tryLock(500, 10_000, TimeUnit.MILLISECONDS)) try { … } finally { lock.unlock(); }
// The same order, wait before lease, in milliseconds. Without a lease the watchdog renews: leave it out, −1 is refused.
await client.scope(async () => {
  if (await lock.tryLock(500, 10_000))
    try {
      await work();
    } finally {
      await lock.unlock();
    }
});

//   lock.lock(10, TimeUnit.SECONDS);                        await lock.lock({ lease: 10_000 })
//   lock.lockInterruptibly();                               await lock.lock({ signal })
//   redisson.getMultiLock(a, b)                             new MultiLock(a, b)
//   fencedLock.lockAndGetToken()                            (await fencedLock.lock()).token
// New code is shorter, and needs no scope:
assert.equal(await lock.run(work), "done");
console.log("the calls: scope and unlock, tryLock(wait, lease), run");

// --- What is in Redis ------------------------------------------------------------------------------------------------

// A hash of the lock's name: the owner (client id and, for the thread, a number) with its hold count; and its lease.
const hold = await lock.lock();
assert.deepEqual(await redis.hgetall("stock"), { [hold.ownerId]: "1" }, "what Redisson writes");
assert.match(hold.ownerId, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+$/);
assert.ok((await redis.pttl("stock")) > 20_000);
console.log("in Redis: stock =", await redis.hgetall("stock"));

// --- Node holds, Java waits ------------------------------------------------------------------------------------------

// Java finds the key without a field of its own, and listens to this channel until "0" comes.
const java = redis.duplicate();
await java.subscribe("redisson_lock__channel:{stock}");
const message = new Promise((resolve) => java.once("message", (_channel, text) => resolve(text)));
await hold.unlock();
assert.equal(await message, "0");
console.log("Node gives back, and Java is told");

// --- Java holds, Node waits ------------------------------------------------------------------------------------------

const thread = "6e3814a1-e847-452b-a982-45baf93a1df2:37";
await redis.multi().hset("stock", thread, 1).pexpire("stock", 30_000).exec(); // lock.lock()
assert.equal(await lock.isLocked(), true);
assert.equal(await lock.tryLock(), null);

const asked = performance.now();
const waiting = new Promise((resolve) => client.once("waiting", resolve));
const next = lock.lock();
await waiting;
await redis.multi().del("stock").publish("redisson_lock__channel:{stock}", "0").exec(); // lock.unlock()
const mine = await next;
const took = Math.round(performance.now() - asked);
assert.ok(took < 10_000, `woken by the message, not by the end of the lease: ${took} ms`);
console.log(`Java gives back, and Node has it after ${took} ms`);

// --- What differs ----------------------------------------------------------------------------------------------------

// Outside of a scope and of run() there is no "current thread". Each lock() is somebody new and does not re-enter, and
// unlock() does not guess: use the Hold, from anywhere.
assert.equal(await lock.tryLock(), null);
const guess = await lock.unlock().catch((error) => error);
assert.ok(isLockError(guess, "NOT_OWNER"));
await mine.unlock();

// A lock that was lost is not the same as one that was never held; in Java both are IllegalMonitorStateException.
const lost = await lock.lock();
await lock.forceUnlock();
const late = await lost.unlock().catch((error) => error);
assert.ok(isLockError(late, "LOCK_LOST"));
console.log("what differs:", guess.code, "and", late.code, "are told apart");

// A key that is no such lock, say another library's or a RBucket, is refused and left alone.
await redis.set("report", "another library's");
const clash = await client
  .getLock("report")
  .lock()
  .catch((error) => error);
assert.ok(isLockError(clash, "WRONG_DATA"), `the same name: ${clash}`);
assert.equal(await redis.get("report"), "another library's");
console.log("the same name:", clash.code, "-", clash.message);

await client.close();
java.disconnect();
redis.disconnect();
await killAll();
