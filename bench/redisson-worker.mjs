// One process of this library in the comparison with Redisson: the loops of interop/…/Bench.java, the other side, with a
// task where that has a thread.
import { load } from "./lib/holdfast.mjs";
import { Redis } from "./lib/ioredis.mjs";

const LEASE = 10_000;
const LONG_LEASE = 600_000;
const NS = 1_000_000;

const { LockClient } = await load();

const now = () => Number(process.hrtime.bigint());

let redis;
let client;
let kept = [];

const SCENARIOS = { connect, cycles, handOver, park, keep, giveBack, cpu };

async function connect({ port, watchdog }) {
  redis = new Redis({ host: "127.0.0.1", port });
  client = new LockClient(redis, { watchdogTimeout: watchdog });
  await client.ready();
}

/** Takes a second of all tasks, each on a lock of its own, for so many ms. */
async function cycles({ tasks, ms }) {
  const start = now();
  const end = start + ms * NS;
  let count = 0;
  const task = async (lock) => {
    while (now() < end) {
      const hold = await lock.lock({ lease: LEASE });
      await hold.unlock();
      count++;
    }
  };
  await Promise.all(locks("own", tasks).map(task));
  return (count * 1e9) / (now() - start);
}

/** All tasks on one lock: when each stay in it began and ended, in ns. Inside, a counter is read and written. */
async function handOver({ tasks, ms }) {
  const lock = client.getLock("bench:wanted");
  const stays = [];
  const end = now() + ms * NS;
  const task = async () => {
    while (now() < end) {
      const hold = await lock.lock({ lease: LEASE });
      const entered = now();
      await redis.set("bench:counter", Number(await redis.get("bench:counter")) + 1);
      stays.push([entered, now()]);
      await hold.unlock();
    }
  };
  await Promise.all(Array.from({ length: tasks }, task));
  return stays;
}

/** Tasks that wait for a lock for as long as this process lives; another holds it. */
async function park({ tasks }) {
  const lock = client.getLock("bench:parked");
  await lock.lock({ lease: LONG_LEASE });
  for (let i = 0; i < tasks; i++) lock.lock();
}

async function keep({ locks: count }) {
  kept = [];
  for (const lock of locks("kept", count)) kept.push(await lock.lock());
}

async function giveBack() {
  for (const hold of kept) await hold.unlock();
}

/** Of this process, in ms. */
function cpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function locks(purpose, count) {
  return Array.from({ length: count }, (_, i) => client.getLock(`bench:${purpose}:${i}`));
}

process.on("disconnect", () => process.exit());
process.on("message", async ({ id, scenario, ...call }) => {
  try {
    process.send({ id, value: await SCENARIOS[scenario](call) });
  } catch (error) {
    process.send({ id, error: String(error.stack) });
  }
});
