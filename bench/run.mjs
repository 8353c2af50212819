// `npm run bench`: take + give back against a raw floor (one EVALSHA to take, one to give back), in one interleaved run on one
// redis-server of its own. Prints medians and the median of the ratios of each repeat: times alone say little on a
// machine that does other things, too.
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { killAll } from "../examples/children.mjs";
import { startServer } from "../examples/server.mjs";

const REPEATS = Number(process.env.BENCH_REPEATS ?? 11);
const SLICE_MS = Number(process.env.BENCH_SLICE_MS ?? 400);
const LEASE = 10_000;
const TAKE = "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0";
const GIVE_BACK =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

async function rawFloor(redis) {
  const [take, giveBack] = await Promise.all([TAKE, GIVE_BACK].map((text) => redis.script("LOAD", text)));
  let n = 0;
  return async (name) => {
    const value = `raw-owner-${++n}`;
    const taken = await redis.evalsha(take, 1, name, value, LEASE);
    const given = await redis.evalsha(giveBack, 1, name, value);
    if (taken !== 1 || given !== 1) throw new Error("the raw floor did not get its lock");
  };
}

function holdfast(client, inFlight) {
  const locks = new Map(
    Array.from({ length: inFlight }, (_, i) => [`bench:${i}`, client.getLock(`bench:${i}`)]),
  );
  return async (name) => {
    const hold = await locks.get(name).lock({ lease: LEASE });
    await hold.unlock();
  };
}

/** Cycles per second of `inFlight` loops, each on a name of its own. */
async function measure(cycle, inFlight) {
  const start = performance.now();
  const end = start + SLICE_MS;
  let cycles = 0;
  const loop = async (name) => {
    while (performance.now() < end) {
      await cycle(name);
      cycles++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, i) => loop(`bench:${i}`)));
  return cycles / ((performance.now() - start) / 1000);
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

async function compare(label, inFlight, raw, ours) {
  const results = { raw: [], ours: [] };
  await measure(raw, inFlight);
  await measure(ours, inFlight);
  for (let i = 0; i < REPEATS; i++) {
    // The order alternates, so that a drift of the machine favours nobody.
    const order = i % 2 ? ["raw", "ours"] : ["ours", "raw"];
    for (const who of order) results[who].push(await measure(who === "raw" ? raw : ours, inFlight));
  }
  const ratios = results.ours.map((rate, i) => rate / results.raw[i]).sort((a, b) => a - b);
  const per = (rates) => `${Math.round(median(rates))}/s`;
  const spread = `[${ratios[0].toFixed(2)} to ${ratios.at(-1).toFixed(2)}]`;
  console.log(
    `${label.padEnd(24)} raw ${per(results.raw).padEnd(9)} holdfast ${per(results.ours).padEnd(9)} ratio ${median(ratios).toFixed(2)} ${spread}`,
  );
}

const directory = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
const server = await startServer(directory);
const redis = new Redis({ host: "127.0.0.1", port: server.port });
const client = new LockClient(redis);
try {
  await client.ready();
  console.log(`Node ${process.version}, ${cpus().length} cores, ${REPEATS} repeats of ${SLICE_MS} ms`);
  const raw = await rawFloor(redis);
  await compare("serial take + give back", 1, raw, holdfast(client, 1));
  await compare("64 locks in flight", 64, raw, holdfast(client, 64));
} finally {
  await client.close({ timeout: 0 });
  redis.disconnect();
  await killAll();
  await rm(directory, { recursive: true });
}
