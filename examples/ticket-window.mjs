// A ticket window, and customers who queue at it: a fair lock serves them in the order in which they came, though each of
// them is in another process. One of them loses patience and leaves; nobody is held up by that.
//
//   node examples/ticket-window.mjs
//
// (Of `getLock` any waiting process may be the next. That is cheaper, and often good enough.)
// The exit code is 1 if somebody was served out of turn.
import assert from "node:assert/strict";
import { once } from "node:events";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { killAll, run } from "./children.mjs";
import { startServer } from "./server.mjs";
import { until } from "./until.mjs";

const PROCESSES = 3;
const CUSTOMERS = ["ada", "ben", "cem", "dot", "eva", "fay", "gus"];
const IMPATIENT = "cem";

const windowOf = (client) => client.getFairLock("window");

/** A process in which customers arrive: one for each message. A second message of the same name: that one leaves. */
function entrance(port) {
  const redis = new Redis(port);
  const client = new LockClient(redis, { pollCap: 30_000 }); // so that only its turn wakes a customer, not the clock
  const patience = new Map();

  async function queue(name) {
    const { signal } = patience.get(name);
    try {
      await windowOf(client).run(() => redis.rpush("served", name), { signal });
    } catch (error) {
      if (error !== signal.reason) throw error;
      await redis.rpush("left", name);
    }
  }

  process.on("message", (name) => {
    if (patience.has(name)) return patience.get(name).abort(new Error("it takes too long"));
    patience.set(name, new AbortController());
    queue(name);
  });
  process.send("open");
}

async function hall() {
  const { port } = await startServer();
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const entrances = Array.from({ length: PROCESSES }, () => run(import.meta.url, port));
  await Promise.all(entrances.map((entrance) => once(entrance, "message")));
  const entranceOf = (name) => entrances[CUSTOMERS.indexOf(name) % PROCESSES];
  /** Everybody who waits, the next one first. */
  const queue = async () => (await client.inspect("window")).waiters;

  // The window is closed yet: the clerk holds the lock. So all must queue, one after the other.
  const clerk = await windowOf(client).lock();
  for (const [before, name] of CUSTOMERS.entries()) {
    entranceOf(name).send(name);
    await until(`${name} stands in the queue`, async () => (await queue()).length === before + 1, 5_000);
  }
  const all = await queue();
  console.log(`${all.length} customers queue, from ${PROCESSES} processes`);

  entranceOf(IMPATIENT).send(IMPATIENT);
  await until(`${IMPATIENT} has left`, () => redis.exists("left"));
  await until("the place is given up", async () => (await queue()).length < all.length);
  const gone = CUSTOMERS.indexOf(IMPATIENT);
  assert.deepEqual(await queue(), all.toSpliced(gone, 1), "the others have kept their places");

  const opened = performance.now();
  await clerk.unlock();
  const others = CUSTOMERS.filter((name) => name !== IMPATIENT);
  await until("all the others are served", async () => (await redis.llen("served")) === others.length);
  const took = Math.round(performance.now() - opened);

  const served = await redis.lrange("served", 0, -1);
  console.log(`${IMPATIENT} has left; served within ${took} ms: ${served.join(", ")}`);
  assert.deepEqual(served, others, "in the order in which they came");
  assert.deepEqual(await redis.lrange("left", 0, -1), [IMPATIENT]);
  assert.ok(took < 10_000, "nobody was held up");
  console.log("everybody else was served in turn.");
  await client.close();
  redis.disconnect();
  await killAll();
}

const [port] = process.argv.slice(2);
await (port ? entrance(Number(port)) : hall());
