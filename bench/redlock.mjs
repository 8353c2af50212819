// `node bench/redlock.mjs`: what a RedLock costs, on redis-servers of its own: take + give back over 3 and 5 masters against
// one master, takes with two of five masters stopped, and four processes of four waiters that all want one lock,
// against a raw Redlock (SET NX PX, compare and delete, random back-off). All that is compared runs interleaved.
import { fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LockClient, RedLock } from "holdfast";
import { Redis } from "ioredis";
import { isAlive, killAll, own } from "../examples/children.mjs";
import { startServer } from "../examples/server.mjs";

const REPEATS = Number(process.env.BENCH_REPEATS ?? 7);
const SLICE_MS = Number(process.env.BENCH_SLICE_MS ?? 400);
const CONTENDED_MS = Number(process.env.BENCH_CONTENDED_MS ?? 2_500);
const LEASE = 10_000;
const PROCESSES = 4;
const WAITERS = 4;

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

const median = (values) => quantile(values, 0.5);
const round = (value, digits = 2) => Number(value.toFixed(digits));

/** Clients on the masters, and a lock over all of them. */
function party(ports) {
  const redises = ports.map((port) => new Redis({ host: "127.0.0.1", port }));
  for (const redis of redises) redis.on("error", () => {});
  const clients = redises.map((redis) => new LockClient(redis));
  const locks = clients.map((client) => client.getLock("bench"));
  const close = async () => {
    await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
    for (const redis of redises) redis.disconnect();
  };
  return { clients, lock: locks.length > 1 ? new RedLock(...locks) : locks[0], close };
}

/** Milliseconds of each take + give back, one after the other. */
async function serial(lock) {
  const times = [];
  const end = performance.now() + SLICE_MS;
  for (let begun = performance.now(); begun < end; begun = performance.now()) {
    await (await lock.lock({ lease: LEASE })).unlock();
    times.push(performance.now() - begun);
  }
  return times;
}

async function uncontended(ports) {
  const sizes = [1, 3, 5];
  const parties = sizes.map((size) => party(ports.slice(0, size)));
  const medians = sizes.map(() => []);
  for (const { lock } of parties) await serial(lock);
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    // The order rotates, so that a drift of the machine favours nobody.
    for (let k = 0; k < sizes.length; k++) {
      const i = (k + repeat) % sizes.length;
      medians[i].push(median(await serial(parties[i].lock)));
    }
  }
  for (const [i, size] of sizes.entries()) {
    const ratio = median(medians[i].map((value, k) => value / medians[0][k]));
    console.log(
      `take + give back, ${size} master${size > 1 ? "s" : " "}   p50 ${round(median(medians[i]), 3)} ms   to one master ${round(ratio)}`,
    );
  }
  await Promise.all(parties.map(({ close }) => close()));
}

async function minorityStopped(servers) {
  const { clients, lock, close } = party(servers.map(({ port }) => port));
  await Promise.all(clients.map((client) => client.ready()));
  await serial(lock);
  const before = await serial(lock);
  for (const { pid } of servers.slice(3)) process.kill(pid, "SIGSTOP");
  const times = [];
  for (let i = 0; i < 200; i++) {
    const begun = performance.now();
    const hold = await lock.lock({ lease: LEASE });
    times.push(performance.now() - begun);
    await hold.unlock();
  }
  for (const { pid } of servers.slice(3)) process.kill(pid, "SIGCONT");
  console.log(
    `two of five stopped     first take ${round(times[0], 1)} ms (a master has ${LEASE / 100})   later: median ${round(median(times.slice(1)))}, worst ${round(Math.max(...times.slice(1)), 1)} ms   before: take + give back ${round(median(before))} ms`,
  );
  await close();
}

/** The processes of one way to lock. */
async function crowd(way, ports) {
  const children = Array.from({ length: PROCESSES }, () =>
    own(fork(fileURLToPath(import.meta.url), ["worker", way, ...ports.map(String)])),
  );
  const ask = (child, question) =>
    new Promise((resolve, reject) => {
      child.once("message", resolve);
      child.once("exit", () => reject(new Error(`a process of ${way} has ended`)));
      child.send(question);
    });
  const all = (question) => Promise.all(children.map((child) => ask(child, question)));
  await all({ ms: 200 });
  const end = () => children.filter(isAlive).map((child) => child.disconnect());
  return { measure: () => all({ ms: CONTENDED_MS }), end };
}

function summary(parts) {
  const sum = (of) => parts.reduce((total, part) => total + of(part), 0);
  const waits = parts.flatMap((part) => part.waits);
  const takes = waits.length;
  const commands = sum((part) => part.commands);
  const spare = sum((part) => part.granted) - sum((part) => part.kept);
  return {
    perSecond: takes / (CONTENDED_MS / 1_000),
    middle: median(waits),
    longest: Math.max(...waits),
    rounds: commands / 3 / takes,
    // Votes that had to be given back, of three a take.
    split: spare / takes,
  };
}

async function contended(ports) {
  const ways = ["raw", "holdfast"];
  const crowds = {};
  for (const way of ways) crowds[way] = await crowd(way, ports);
  const results = { raw: [], holdfast: [] };
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (const way of repeat % 2 ? ways : [...ways].reverse()) {
      results[way].push(summary(await crowds[way].measure()));
    }
  }
  console.log(`${PROCESSES} processes x ${WAITERS} waiters, 3 masters, held for 1 ms`);
  const ratios = results.holdfast.map(({ perSecond }, i) => perSecond / results.raw[i].perSecond);
  for (const way of ways) {
    const of = (what) => median(results[way].map((result) => result[what]));
    console.log(
      `  ${way.padEnd(9)} ${Math.round(of("perSecond"))} takes/s   wait: median ${round(of("middle"), 1)}, longest ${round(of("longest"), 1)} ms   rounds per take ${round(of("rounds"))}   votes given back per take ${round(of("split"))}`,
    );
  }
  console.log(`  takes/s to raw: ${round(median(ratios))}`);
  for (const way of ways) crowds[way].end();
}

async function main() {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
  try {
    const servers = [];
    for (let i = 0; i < 5; i++) servers.push(await startServer(await mkdtemp(join(directory, "master-"))));
    const ports = servers.map(({ port }) => port);
    console.log(`Node ${process.version}, ${cpus().length} cores, ${REPEATS} repeats`);
    await uncontended(ports);
    await minorityStopped(servers);
    await contended(ports.slice(0, 3));
  } finally {
    await killAll();
    await rm(directory, { recursive: true });
  }
}

const [role, way, ...ports] = process.argv.slice(2);
if (role === "worker") {
  const { work } = await import("./redlock-worker.mjs");
  await work(way, ports.map(Number), WAITERS);
} else await main();
