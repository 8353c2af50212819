// Locks through Redis Sentinel, and a failover while one is held: the master is killed, the watchdog goes on with the
// one that takes over, the hold is kept, and who waits for it gets it from there.
//
//   node examples/sentinel/main.mjs
//
// It starts five real servers of its own, on free ports. The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { killAll } from "../children.mjs";
import { NAME, PASSWORD, SENTINEL_PASSWORD, startServers } from "./servers.mjs";

const directory = mkdtempSync(join(tmpdir(), "holdfast-sentinel-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
setTimeout(() => assert.fail("it takes too long"), 120_000).unref();
const { master, replica, sentinels } = await startServers(directory);

/** One connection of your own for each process is enough; the client adds one to be woken by. */
function connect() {
  const redis = new Redis({
    sentinels, // [{ host, port }, …]: any of them will do, the others are found
    name: NAME,
    password: PASSWORD,
    sentinelPassword: SENTINEL_PASSWORD,
    db: 2,
    // Leaves a master that was replaced even if that one hangs and its connections stay open.
    failoverDetector: true,
  });
  redis.on("error", () => {}); // told while there is no master; the locks know what to do
  return { redis, client: new LockClient(redis) };
}

const ada = connect();
const ben = connect();
const lock = ada.client.getLock("order 7");

const hold = await lock.lock();
const waiting = new Promise((resolve) => ben.client.once("waiting", resolve));
const bens = ben.client.getLock("order 7").lock();
await waiting;
// A lock that is older than the lag of the replica, some milliseconds, has arrived there.
assert.equal(await ada.redis.wait(1, 5_000), 1);
console.log("Ada holds the lock, Ben waits.");

const killed = performance.now();
process.kill(master.pid, "SIGKILL");
console.log("The master is killed.");
await new Promise((resolve) => ada.redis.once("ready", resolve));
console.log(`A new master answers after ${seconds(killed)}.`);

assert.equal(hold.isHeld, true, "the hold was lost in the failover");
// Redis has been away for less than the lease, so the next renewal finds the copy of the lock that the replica had.
await Promise.race([next(ada.client, "renewed"), next(ada.client, "lost")]);
assert.equal(hold.isHeld, true, "the hold was not on the replica");
assert.equal(ada.redis.stream.remotePort, replica.port);
assert.deepEqual(await ada.redis.hgetall("order 7"), { [hold.ownerId]: "1" });
console.log(`The new master has renewed Ada's hold, ${seconds(killed)} after the kill.`);

const released = performance.now();
await hold.unlock();
const got = await bens;
assert.equal(got.isHeld, true);
console.log(`Ada gives it back, and Ben has it within ${Math.round(performance.now() - released)} ms.`);
await got.unlock();
assert.equal(await lock.isLocked(), false);

console.log("\nThe hold outlived its master, and the one who waited got it from the next.");
console.log("A lock that had not reached the replica would be lost, and its holder told: see `replicas`.");
await Promise.all([ada, ben].map(({ client }) => client.close()));
for (const { redis } of [ada, ben]) redis.disconnect();
await killAll();

function next(client, event) {
  return new Promise((resolve) => client.once(event, resolve));
}

function seconds(since) {
  return `${((performance.now() - since) / 1_000).toFixed(1)} s`;
}
