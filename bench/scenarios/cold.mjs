// A service that takes a lock now and then: a fresh process, in which little has been compiled or is in a cache.
import { quantile, sleep, sorted } from "../lib/stats.mjs";
import { TTL } from "../work/serial.mjs";

const EVERY_MS = 20;
const LASTS_MS = 20_000;
/** Its calls are awaited for longer than those of other scenarios. */
const PATIENCE_MS = 2 * LASTS_MS;

async function run(w) {
  const times = [];
  const cpu = w.cpuMs();
  const start = performance.now();
  for (let due = EVERY_MS; due <= LASTS_MS; due += EVERY_MS) {
    await sleep(Math.max(0, start + due - performance.now()));
    const asked = performance.now();
    await w.inst.release(await w.inst.acquire("bench:lock", TTL));
    times.push(performance.now() - asked);
  }
  const inOrder = sorted(times);
  return {
    p50: quantile(inOrder, 0.5),
    p99: quantile(inOrder, 0.99),
    cpuUs: (1_000 * (w.cpuMs() - cpu)) / times.length,
  };
}

export default {
  id: "cold",
  title: "a cold service",
  order: 1.5,
  floors: ["raw", "wire"],
  pin: "together",
  fresh: true,
  repeats: 3,
  peers: ({ name }) => name === "redis-semaphore",
  variants: [{ label: "50 takes a second for 20 s" }],
  metrics: [
    { key: "p50", label: "cycle p50 ms", ratio: true },
    { key: "p99", label: "cycle p99 ms", ratio: true },
    { key: "cpuUs", label: "client CPU µs / cycle", ratio: true },
  ],
  worker: { run },
  warm: () => {},
  async measure({ children: [child], servers }) {
    for (const server of servers) await server.flush();
    return child.call("run", {}, PATIENCE_MS);
  },
};
