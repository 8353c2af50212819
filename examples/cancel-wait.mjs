// Cancelling a wait. A report may be made once at a time, and somebody makes it just now; others want it too, and do not
// want to wait for ever: one closes the browser, one has a deadline, one waits for a second and no longer. Each call ends
// at once and leaves nothing behind: no waiter, no subscription, no lock that nobody gives back. Who still waits is next.
//
//   node examples/cancel-wait.mjs
//
// A signal ends the wait only. Once the lock is granted, what you do with it is yours: see `hold.signal` in lost-hold.mjs.
// The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { killAll } from "./children.mjs";
import { startServer } from "./server.mjs";
import { until } from "./until.mjs";

const { port } = await startServer();
const redis = new Redis(port);
const colleague = new LockClient(redis);
const client = new LockClient(redis);
const report = client.getLock("report");
const hold = await colleague.getLock("report").lock();

/** What a call was refused with. */
const refusal = (call) =>
  call.then(
    () => assert.fail("it was granted"),
    (error) => error,
  );

// 1. The user closes the browser: the request ends, and with it the wait.
const ends = [];
const server = createServer(async (_request, response) => {
  const browser = new AbortController();
  response.once("close", () => browser.abort(new Error("the user has gone")));
  try {
    await report.run(() => response.end("the report"), { signal: browser.signal });
    ends.push("served");
  } catch (error) {
    ends.push(error.message);
  }
}).listen(0, "127.0.0.1");
await once(server, "listening");

const tab = new AbortController();
const waiting = new Promise((resolve) => client.once("waiting", resolve));
const page = fetch(`http://127.0.0.1:${server.address().port}`, { signal: tab.signal });
page.catch(() => {}); // nobody looks at it any more
await waiting;
tab.abort();
await until("the server's wait has ended", () => ends.length > 0, 5_000);
assert.deepEqual(ends, ["the user has gone"]);
console.log("browser closed:     rejected with the signal's reason:", ends[0]);

// 2. A deadline for several steps. AbortSignal.any() joins it with others; whichever aborts first ends the wait.
const signal = AbortSignal.any([AbortSignal.timeout(1_000), new AbortController().signal]);
const late = refusal(report.lock({ signal }));

// 3. A limit for this wait alone. `lock` and `run` reject, `tryLock` gives null.
const tooLong = refusal(report.lock({ wait: 1_000 }));
const without = report.tryLock(1_000);

assert.equal((await late).name, "TimeoutError");
console.log("deadline:           rejected with the signal's reason:", (await late).name);
const { code, waited } = await tooLong;
assert.equal(code, "WAIT_TIMEOUT");
console.log(`wait:               rejected with ${code} after ${Math.round(waited)} ms`);
assert.equal(await without, null);

// 4. Too late from the beginning: refused at once, without asking Redis.
assert.equal(await refusal(report.lock({ signal: AbortSignal.abort("no") })), "no");

// Nothing is left behind of all these.
await until("nobody listens any more", async () => {
  const [, listeners] = await redis.pubsub("NUMSUB", "redisson_lock__channel:{report}");
  return Number(listeners) === 0;
});
assert.deepEqual(await redis.hgetall("report"), { [hold.ownerId]: "1" });

// 5. Whoever still waits when the lock is given back is next, though others before it have gone.
const impatient = new AbortController();
const gone = refusal(report.lock({ signal: impatient.signal }));
const patient = new AbortController();
const next = report.lock({ signal: patient.signal });
impatient.abort();
await gone;
const released = performance.now();
await hold.unlock();
const mine = await next;
console.log(`given back:         the next one has it after ${Math.round(performance.now() - released)} ms`);
// A signal that aborts after the grant changes nothing.
patient.abort();
assert.equal(mine.isHeld, true);
await mine.unlock();
assert.deepEqual(await redis.keys("report"), [], "nothing is locked any more");
console.log("nobody waits, nobody listens, nothing is locked.");

server.close();
server.closeAllConnections();
await Promise.all([client.close(), colleague.close()]);
redis.disconnect();
await killAll();
