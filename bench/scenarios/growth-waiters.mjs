// One lock, wanted by more and more waiters of one process, who give it back at once.
import { counting } from "../lib/redis.mjs";
import { curve, sleep } from "../lib/stats.mjs";
import { audit, TTL } from "../work/serial.mjs";

const KEY = "bench:growth";
const SETTLE_MS = 40;
const PATIENCE_MS = 60_000;
/** Few waiters are served in no time: again and again, until so many have been. */
const SERVED = 1_000;
const MOST_ROUNDS = 8;

function heap() {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function crowd(w, waiters) {
  const holder = await w.inst.acquire(KEY, 2 * PATIENCE_MS);
  const sent = w.sent();
  const empty = heap();
  const gaps = [];
  let released;
  let inside = 0;
  let violations = 0;
  const task = async () => {
    const hold = await w.inst.acquire(KEY, TTL);
    gaps.push(performance.now() - released);
    if (++inside > 1) violations++;
    inside--;
    released = performance.now();
    await w.inst.release(hold);
  };
  const all = Promise.all(Array.from({ length: waiters }, task));
  await sleep(SETTLE_MS);
  const heapPer = (heap() - empty) / waiters;
  const cpu = w.cpuMs();
  const start = performance.now();
  released = start;
  await w.inst.release(holder);
  await all;
  const took = performance.now() - start;
  return { took, heapPer, gaps, violations, sent: w.sent() - sent, cpu: w.cpuMs() - cpu };
}

async function run(w, { waiters }) {
  const rounds = Math.max(1, Math.min(MOST_ROUNDS, Math.round(SERVED / waiters)));
  const totals = { took: 0, sent: 0, cpu: 0, violations: 0 };
  const gaps = [];
  let heapPer;
  for (let i = 0; i < rounds; i++) {
    const one = await crowd(w, waiters);
    for (const key of Object.keys(totals)) totals[key] += one[key];
    for (const gap of one.gaps) gaps.push(gap);
    heapPer = one.heapPer;
  }
  const served = rounds * waiters;
  return {
    perHandOverUs: (1_000 * totals.took) / served,
    cpuUs: (1_000 * totals.cpu) / served,
    sentPer: totals.sent / served,
    heapPer,
    violations: totals.violations,
    curve: curve(gaps),
    n: served,
  };
}

export default {
  id: "growth-waiters",
  title: "more waiters in one process",
  order: 20,
  floors: ["raw-fifo"],
  peers: () => false,
  pin: "together",
  audit: true,
  variants: [10, 16, 100, 1_000, 10_000].map((x) => ({ label: `${x} waiters`, x })),
  grows: {
    by: "waiters",
    figures: ["perHandOverUs", "cpuUs", "sentPer", "heapPer"],
  },
  metrics: [
    { key: "perHandOverUs", label: "µs / hand-over", ratio: true },
    { key: "cpuUs", label: "client CPU µs / hand-over", ratio: true },
    { key: "sentPer", label: "commands sent / take" },
    { key: "executedPer", label: "commands run in Redis / take" },
    { key: "heapPer", label: "client heap B / waiter", ratio: true },
  ],
  worker: { audit, warm: (w) => run(w, { waiters: 200 }), run },
  async measure({ children: [child], servers, variant: { x } }) {
    await servers[0].flush();
    const { result, redis } = await counting(servers, () => child.call("run", { waiters: x }, PATIENCE_MS));
    return { ...result, executedPer: redis.executed / result.n };
  },
};
