// Take and give back, one after the other: what several scenarios do with different locks.
import { counting } from "../lib/redis.mjs";
import { curve, quantile, sleep, sorted } from "../lib/stats.mjs";

export const TTL = 10_000;
/** A service has done this for hours: code that has just been loaded is several times slower, the longer the slower. */
export const WARM_MS = 800;
/** What has run so often is as fast as it gets: slow cycles, as those over several masters, are warmed up for longer. */
const WARM_CYCLES = 10_000;
const LONGEST_WARM_MS = 6_000;
const MOST = 200_000;

/** Cycles for so many ms, each half timed. `take` and `giveBack` may be of a scope that holds the lock already. */
export async function cycles(w, ms, take, giveBack) {
  const takes = new Float64Array(MOST);
  const both = new Float64Array(MOST);
  const sent = w.sent();
  const cpu = w.cpuMs();
  const start = performance.now();
  const end = start + ms;
  let n = 0;
  let done = start;
  while (done < end && n < MOST) {
    const asked = performance.now();
    const hold = await take();
    const taken = performance.now();
    await giveBack(hold);
    done = performance.now();
    takes[n] = taken - asked;
    both[n++] = done - asked;
  }
  const times = sorted(both.subarray(0, n));
  return {
    n,
    ops: n / ((done - start) / 1_000),
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    takeP50: quantile(sorted(takes.subarray(0, n)), 0.5),
    sent: w.sent() - sent,
    cpu: w.cpuMs() - cpu,
    curve: curve(times),
  };
}

/** Untimed sections of tasks that want one lock, with a counter in Redis that is awaited: how many saw another inside. */
export async function audit(w, { key = "bench:audit", tasks = 4, sections = 5 } = {}) {
  let violations = 0;
  const task = async () => {
    for (let i = 0; i < sections; i++) {
      const hold = await w.inst.acquire(key, TTL);
      if ((await w.check.hincrby("bench:inside", key, 1)) !== 1) violations++;
      await sleep(1);
      if ((await w.check.hincrby("bench:inside", key, -1)) !== 0) violations++;
      await w.inst.release(hold);
    }
  };
  await Promise.all(Array.from({ length: tasks }, task));
  return { violations, done: tasks * sections };
}

export const metrics = [
  { key: "ops", label: "cycles/s", ratio: true },
  { key: "p50", label: "cycle p50 ms", ratio: true },
  { key: "p99", label: "cycle p99 ms", ratio: true },
  { key: "takeP50", label: "take p50 ms" },
  { key: "sentPer", label: "commands sent / cycle" },
  { key: "executedPer", label: "commands run in Redis / cycle" },
  { key: "cpuUs", label: "client CPU µs / cycle", ratio: true },
];

const onOneKey = (key) => (w, ms) => cycles(w, ms, () => w.inst.acquire(key, TTL), w.inst.release);

/** The worker's part of a scenario whose cycles `run(w, ms)` does. */
export const workerOf = (run) => ({
  async warm(w) {
    const end = performance.now() + LONGEST_WARM_MS;
    for (let n = 0; n < WARM_CYCLES && performance.now() < end; ) n += (await run(w, WARM_MS)).n;
  },
  run: (w, { ms }) => run(w, ms),
  audit,
});

export const worker = (key = "bench:lock") => workerOf(onOneKey(key));

export async function measure({ children: [child], servers, sliceMs }) {
  for (const server of servers) await server.flush();
  const { result, redis } = await counting(servers, () => child.call("run", { ms: sliceMs }));
  const { n, sent, cpu } = result;
  return {
    ...result,
    sentPer: sent / n,
    executedPer: redis.executed / n,
    cpuUs: (1_000 * cpu) / n,
    redisUs: (1_000 * redis.cpuMs) / n,
  };
}
