// A parking lot with three places and more cars than that, which come through several gates, each a process. A semaphore
// counts the places: a car takes a permit, a coach two, and whoever finds none waits for the next one that is given back.
//
//   node examples/parking-lot.mjs
//
// A permit of this semaphore is a number in Redis and nobody's: a car that breaks down inside (a process that dies) keeps
// its place for ever. If that can happen, take getPermitExpirableSemaphore: its permits have a lease, which the watchdog
// renews while their process lives.
// The exit code is 1 if there ever were more inside than there are places, or if somebody did not get in.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { endOf, killAll, run } from "./children.mjs";
import { startServer } from "./server.mjs";
import { until } from "./until.mjs";

const PLACES = 3;
const GATES = 3;
const CARS = 5; // at each gate
const COACH = 2; // places

/** One gate, in a process of its own. Its cars, and a coach, all come at once. */
async function gate(port) {
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const lot = client.getSemaphore("lot");
  const queue = [];
  client.on("waiting", () => queue.push("one more"));

  const park = (places) =>
    lot.run(
      async () => {
        // Counted by Redis itself, whatever the semaphore says.
        const inside = await redis.incrby("inside", places);
        await sleep(10);
        await redis.decrby("inside", places);
        return inside;
      },
      { permits: places },
    );

  const visits = Promise.all([park(COACH), ...Array.from({ length: CARS }, () => park(1))]);
  await until("all wait at the gate", () => queue.length > CARS);
  process.send("full");
  process.send(await visits);
  await client.close();
  redis.disconnect();
}

async function city() {
  const { port } = await startServer();
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const lot = client.getSemaphore("lot");
  // Whoever is the first sets the number; the others change nothing.
  assert.equal(await lot.trySetPermits(PLACES), true);
  assert.equal(await lot.trySetPermits(100), false);

  // The lot is not open yet: all places are taken.
  await lot.acquire(PLACES);
  assert.equal(await lot.tryAcquire(1), false);
  const gates = Array.from({ length: GATES }, () => run(import.meta.url, port));
  const ends = Promise.all(gates.map(endOf));
  await Promise.all(gates.map((child) => new Promise((resolve) => child.once("message", resolve))));
  console.log(`${GATES * CARS} cars and ${GATES} coaches wait at ${GATES} gates for ${PLACES} places`);

  await lot.release(PLACES);
  const visits = (await ends).flat();
  const most = Math.max(...visits);
  console.log(`all ${visits.length} got in, never more than ${most} places were taken`);
  assert.equal(visits.length, GATES * (CARS + 1), "all got in");
  assert.equal(most, PLACES, "as many inside as there are places, and never more");
  assert.equal(await lot.availablePermits(), PLACES, "all places are free again");

  await client.close();
  redis.disconnect();
  await killAll();
}

const [port] = process.argv.slice(2);
await (port ? gate(Number(port)) : city());
