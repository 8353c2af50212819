// A hold that is lost. The watchdog renews a hold, but it lives in the same event loop as your code: a process that computes
// for longer than its lease without a pause (or is stopped, or cut off from Redis) loses the lock, and another takes it.
// You are told in each way that you may ask, and the write that would do harm is not done:
//
//   hold.isHeld, hold.assertHeld()   look at the clock: right even in the line after the stall, before any timer could fire
//   hold.signal                      aborts; pass it to what you await
//   run                              rejects with LOCK_LOST; `error.result` is what your function returned, if it did
//   client.on("lost")                for the log
//
//   node examples/lost-hold.mjs
//
// Between assertHeld() and the write there is still a moment. If that is too much for you: examples/fenced-write.
// The exit code is 1 if the late write was done, or if somebody was not told.
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { isLockError, LockClient } from "holdfast";
import { Redis } from "ioredis";
import { endOf, killAll, run } from "./children.mjs";
import { startServer } from "./server.mjs";

const LEASE = 1_500; // the default is 30 s

function connect(port) {
  const redis = new Redis(port);
  const client = new LockClient(redis, { watchdogTimeout: LEASE });
  return { redis, client, lock: client.getLock("thesis") };
}

/** Ada, in a process of her own, computes for too long. */
async function ada(port) {
  const { redis, client, lock } = connect(port);
  const events = [];
  client.on("lost", ({ lockName }) => events.push(lockName));

  const seen = [];
  const outcome = await lock
    .run(async (hold) => {
      process.send("holds");
      compute(1.3 * LEASE);
      seen.push(hold.isHeld);
      try {
        hold.assertHeld();
        await redis.set("thesis:text", "Ada's");
      } catch (error) {
        seen.push(error.code);
      }
      if (!hold.signal.aborted) await once(hold.signal, "abort");
      seen.push(hold.signal.reason.code);
      return "her result";
    })
    .catch((error) => error);

  assert.ok(isLockError(outcome, "LOCK_LOST"), `run: ${outcome}`);
  assert.equal(outcome.result, "her result");
  assert.deepEqual(seen, [false, "LOCK_LOST", "LOCK_LOST"], "isHeld, assertHeld() and signal");
  assert.deepEqual(events, ["thesis"], "the event");
  process.send(outcome.message);
  await client.close();
  redis.disconnect();
}

/** Nothing else can happen in this process meanwhile: no renewal, no timer. */
function compute(ms) {
  for (const end = performance.now() + ms; performance.now() < end; );
}

async function main() {
  const { port } = await startServer();
  const { redis, client, lock } = connect(port);

  const child = run(import.meta.url, port);
  const ended = endOf(child);
  await once(child, "message");
  console.log("Ada holds the lock, and computes.");
  await lock.run(async (hold) => {
    console.log("Her lease is over: Ben has the lock, and writes.");
    hold.assertHeld();
    await redis.set("thesis:text", "Ben's");
  });
  console.log("Ada comes back and is told:", await ended);
  assert.equal(await redis.get("thesis:text"), "Ben's", "Ada's late write was done");

  // What is awaited can be ended by the signal, as soon as the loss is known: here at the next renewal.
  const outcome = await lock
    .run(async (hold) => {
      await redis.del("thesis"); // somebody cleans up the wrong keys
      await sleep(30_000, undefined, { signal: hold.signal });
    })
    .catch((error) => error);
  assert.equal(outcome.name, "AbortError");
  assert.ok(isLockError(outcome.cause, "LOCK_LOST"));
  console.log("Work that is given hold.signal ends with the hold:", outcome.cause.message);

  await client.close();
  redis.disconnect();
  await killAll();
}

const [port] = process.argv.slice(2);
await (port ? ada(Number(port)) : main());
