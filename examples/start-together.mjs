// A load test from several processes must start everywhere at once, when the last of them is ready. A count-down latch is
// the gate: each worker prepares, counts down by one, and waits; at zero the gate opens for all.
//
//   node examples/start-together.mjs
//
// The exit code is 1 if somebody started before all were ready.
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { endOf, killAll, run } from "./children.mjs";
import { startServer } from "./server.mjs";

const WORKERS = 4;

/** One worker, in a process of its own. */
async function work(port, number) {
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const gate = client.getCountDownLatch("gate");

  // Prepares: one takes longer than the other, and the last one as long as it is told.
  if (number === WORKERS) await once(process, "message");
  else await sleep(number * 20);
  await redis.rpush("diary", "ready");

  await gate.countDown();
  process.send("ready");
  await gate.await();

  await redis.rpush("diary", "started");
  await client.close();
  redis.disconnect();
}

async function main() {
  const { port } = await startServer();
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const gate = client.getCountDownLatch("gate");
  // Before anybody can ask for it: a latch that was never set is open.
  assert.equal(await gate.trySetCount(WORKERS), true);

  const workers = Array.from({ length: WORKERS }, (_, i) => run(import.meta.url, port, i + 1));
  const ends = Promise.all(workers.map(endOf));
  await Promise.all(workers.slice(0, -1).map((worker) => once(worker, "message")));
  assert.equal(await gate.getCount(), 1, "one is not ready");
  assert.equal(
    await gate.await(500),
    false,
    "who waits for a while only is told that the gate is closed yet",
  );
  assert.ok(
    !(await redis.lrange("diary", 0, -1)).includes("started"),
    "nobody starts before the last is ready",
  );
  console.log(`${WORKERS - 1} of ${WORKERS} workers are ready, and wait for the last one`);

  workers.at(-1).send("go on");
  const told = performance.now();
  await gate.await();
  await ends;
  console.log(`all have started, and were done ${Math.round(performance.now() - told)} ms later`);
  const diary = await redis.lrange("diary", 0, -1);
  const all = (word) => Array.from({ length: WORKERS }, () => word);
  assert.deepEqual(diary, [...all("ready"), ...all("started")], "all were ready before the first started");
  assert.equal(await redis.exists("gate"), 0, "the gate may be set again, for the next round");

  await client.close();
  redis.disconnect();
  await killAll();
}

const [port, number] = process.argv.slice(2);
await (port ? work(Number(port), Number(number)) : main());
