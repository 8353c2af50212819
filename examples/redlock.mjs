// One lock over five independent masters (Redlock): it is held while three of them say so, and so survives the loss of any
// two. Two box offices book seats of one theatre; meanwhile two masters are killed, and then a third.
//
//   node examples/redlock.mjs
//
// Redlock rarely pays: it costs five servers and asks all of them for each lock, and like every lock with a lease it cannot
// stop a holder that was paused for longer. Where a late write does harm, compare a fencing token or a version as well.
// The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isLockError, LockClient, RedLock } from "holdfast";
import { Redis } from "ioredis";
import { kill, killAll } from "./children.mjs";
import { startServer } from "./server.mjs";

const MASTERS = 5;
const BOOKINGS = 40;

const directory = mkdtempSync(join(tmpdir(), "holdfast-redlock-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

// Masters, not a master and its replicas: each must be able to lose everything without the others.
const masters = await Promise.all(Array.from({ length: MASTERS }, () => startServer(directory)));

/** One participant: a client for each master. */
function connect() {
  const clients = masters.map(({ port }) => {
    const redis = new Redis({ port, retryStrategy: () => 200 });
    // ioredis tells of each connection that fails; the lock is made to live with that.
    redis.on("error", () => {});
    return { redis, client: new LockClient(redis) };
  });
  return {
    lock: new RedLock(...clients.map(({ client }) => client.getLock("theatre"))),
    async close() {
      // All at once: a master that does not answer is given the time of one command.
      await Promise.all(clients.map(({ client }) => client.close({ timeout: 0 })));
      for (const { redis } of clients) redis.disconnect();
    },
  };
}

const box = connect();
const web = connect();

let seats = 0;
/** Reads, does something else, writes: two at a time would lose a booking. */
async function book(place) {
  await place.lock.run(async (hold) => {
    const taken = seats;
    await new Promise((resolve) => setImmediate(resolve));
    hold.assertHeld();
    seats = taken + 1;
  });
}

async function sell(place) {
  for (let booked = 0; booked < BOOKINGS; ) {
    try {
      await book(place);
      booked++;
    } catch (error) {
      // Too few masters answered in time, of a machine that is busy, say: nothing was booked.
      if (!isLockError(error, "QUORUM")) throw error;
    }
  }
}

await Promise.all([sell(box), sell(web)]);
assert.equal(seats, 2 * BOOKINGS);
console.log(`five masters: ${seats} seats booked, none twice`);

// A majority grants it, the others join; it stays with its holder when two masters go.
const hold = await box.lock.lock();
while (hold.members.length < MASTERS) await new Promise(setImmediate);
await Promise.all(masters.slice(0, 2).map(({ child }) => kill(child)));
assert.equal(hold.isHeld, true);
assert.equal(await web.lock.tryLock(), null, "nobody else gets it");
await hold.unlock();

await Promise.all([sell(box), sell(web)]);
assert.equal(seats, 4 * BOOKINGS);
console.log(`two of them killed: ${seats} seats booked, none twice`);

const { child } = masters[2];
await kill(child);
const refusal = await box.lock.lock().catch((error) => error);
assert.ok(isLockError(refusal, "QUORUM"), `three of them killed: ${refusal}`);
console.log(`three of them killed: ${refusal.code}, no seat is booked`);

await Promise.all([box.close(), web.close()]);
await killAll();
