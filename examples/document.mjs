// Many readers and one writer: a document in two parts, which must be read as one. The writer writes one part after the
// other; whoever reads between the two has half of one version and half of another. With a read-write lock readers read
// side by side, but never beside the writer, and the writer gets in although there is always somebody who reads.
//
//   node examples/document.mjs
//
// The exit code is 1 if a half-written document was read, if readers waited for each other, or if the writer did not get in.
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { endOf, killAll, run } from "./children.mjs";
import { startServer } from "./server.mjs";

const READERS = 2; // processes
const AT_ONCE = 3; // in each of them
const VERSIONS = 15;

/** A process that reads all the time, in several places at once, until the last version is out. */
async function read(port) {
  const { redis, lock, close } = connect(port);
  let reads = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let version = 0; version < VERSIONS; reads++) {
        version = await lock.readLock().run(async () => {
          most = Math.max(most, await redis.incr("reading"));
          const head = await redis.get("head");
          await sleep(5 + 20 * Math.random()); // some read faster than others, so there is always somebody who reads
          const body = await redis.get("body");
          assert.equal(body, head, "a half-written document was read");
          await redis.decr("reading");
          return Number(head);
        });
        if (reads === 0) process.send("reading");
      }
    }),
  );
  process.send({ reads, most });
  await close();
}

async function write(port) {
  const { redis, lock, close } = connect(port);
  // Without the lock's option preferWriters, which is on unless you say no, it would wait for a moment in which nobody reads.
  for (let version = 1; version <= VERSIONS; version++) {
    await lock.writeLock().run(
      async (hold) => {
        await redis.set("head", version);
        await sleep(2); // thinks about the rest
        hold.assertHeld();
        await redis.set("body", version);
      },
      { wait: 5_000 },
    );
    await sleep(5);
  }
  await close();
}

function connect(port) {
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const close = async () => {
    await client.close();
    redis.disconnect();
  };
  return { redis, lock: client.getReadWriteLock("document"), close };
}

async function office() {
  const { port } = await startServer();
  const redis = new Redis(port);
  await redis.mset("head", 0, "body", 0);

  const readers = Array.from({ length: READERS }, () => run(import.meta.url, port, "read"));
  const ends = Promise.all(readers.map(endOf));
  await Promise.all(readers.map((reader) => once(reader, "message")));
  await endOf(run(import.meta.url, port, "write"));
  const results = await ends;

  const reads = results.reduce((sum, result) => sum + result.reads, 0);
  const most = Math.max(...results.map((result) => result.most));
  console.log(`${VERSIONS} versions written and ${reads} times read, by up to ${most} readers at once`);
  assert.deepEqual(await redis.mget("head", "body"), [String(VERSIONS), String(VERSIONS)]);
  assert.ok(most > 1, "readers read side by side");
  console.log("no reader saw half a version, and the writer was never kept out.");
  redis.disconnect();
  await killAll();
}

const [port, role] = process.argv.slice(2);
if (role === "read") await read(Number(port));
else if (role === "write") await write(Number(port));
else await office();
