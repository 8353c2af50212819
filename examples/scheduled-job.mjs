// A scheduled job that runs once in a fleet: every process has the same timetable, and at each tick one of them does the
// job. Clocks are never quite the same, so the last process comes to the tick when the first has long done the job:
//
//   lock alone        `tryLock()`, the job, `unlock()`: wrong. Who comes late finds the lock free, and does the job again
//   lock and record   the name of the tick that was done is written, and read by the next, under the lock. If the process
//                     dies before it has written, another one does the job: at least once
//   lease             a lock for each tick, left to lapse: its lease is longer than clocks differ. If the process dies,
//                     this tick is left out: at most once
//
//   node examples/scheduled-job.mjs
//
// (A lease that is left to lapse is given back early by `client.close()`: see submit-throttle.mjs.)
// The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { killAll, run } from "./children.mjs";
import { startServer } from "./server.mjs";

const TICKS = [1, 2, 3];
/** More than the clocks of the fleet can differ. */
const JITTER = 10_000;

/** One process of the fleet. */
function work(port) {
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const ways = { alone, record, lease };

  const job = (way, tick) => redis.incr(`runs:${way}:${tick}`);

  async function alone(tick) {
    const hold = await client.getLock("report").tryLock();
    if (!hold) return;
    await job("alone", tick);
    await hold.unlock();
  }

  async function record(tick) {
    await client.getLock("report").run(async (hold) => {
      if (Number(await redis.get("report:done")) >= tick) return;
      await job("record", tick);
      hold.assertHeld();
      await redis.set("report:done", tick);
    });
  }

  async function lease(tick) {
    if (await client.getLock(`report:${tick}`).tryLock(0, JITTER)) await job("lease", tick);
  }

  // What a timer would do.
  process.on("message", async ([way, tick]) => {
    await ways[way](tick);
    process.send("done");
  });
  process.send("ready");
}

/** The clocks on the walls: two of the processes come to a tick at once, the third when they are done. */
async function fleet() {
  const { port } = await startServer();
  const redis = new Redis(port);
  const [first, second, late] = await Promise.all(
    [1, 2, 3].map(async () => {
      const child = run(import.meta.url, port);
      await answer(child);
      return child;
    }),
  );

  async function runs(way) {
    for (const tick of TICKS) {
      await Promise.all([fire(first, way, tick), fire(second, way, tick)]);
      await fire(late, way, tick);
    }
    return (await redis.mget(TICKS.map((tick) => `runs:${way}:${tick}`))).map(Number);
  }

  const counts = { alone: await runs("alone"), record: await runs("record"), lease: await runs("lease") };
  console.log("runs of the job at each tick:", counts);
  for (const count of counts.alone) assert.ok(count > 1, "the lock alone lets the late process do it again");
  assert.deepEqual(counts.record, [1, 1, 1], "lock and record: once at each tick");
  assert.deepEqual(counts.lease, [1, 1, 1], "lease: once at each tick");
  console.log("the record and the lease let each job run once; the lock alone did not.");
  redis.disconnect();
  await killAll();
}

function fire(child, way, tick) {
  child.send([way, tick]);
  return answer(child);
}

function answer(child) {
  return new Promise((resolve) => child.once("message", resolve));
}

const [port] = process.argv.slice(2);
await (port ? work(Number(port)) : fleet());
