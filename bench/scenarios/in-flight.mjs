// So many tasks, each with a lock of its own.
import { curve, quantile, sorted } from "../lib/stats.mjs";
import { measure, metrics, TTL, WARM_MS, workerOf } from "../work/serial.mjs";

const run = (flight) => async (w, ms) => {
  const times = [];
  const sent = w.sent();
  const cpu = w.cpuMs();
  const start = performance.now();
  const end = start + ms;
  const task = async (_, i) => {
    const key = `bench:lock:${i}`;
    for (let asked = performance.now(); asked < end; ) {
      await w.inst.release(await w.inst.acquire(key, TTL));
      const done = performance.now();
      times.push(done - asked);
      asked = done;
    }
  };
  await Promise.all(Array.from({ length: flight }, task));
  const took = performance.now() - start;
  const inOrder = sorted(times);
  return {
    n: times.length,
    ops: times.length / (took / 1_000),
    p50: quantile(inOrder, 0.5),
    p99: quantile(inOrder, 0.99),
    sent: w.sent() - sent,
    cpu: w.cpuMs() - cpu,
    curve: curve(inOrder),
  };
};

const { audit } = workerOf(run(64));

export default {
  id: "in-flight",
  title: "locks in flight",
  order: 3,
  floors: ["raw", "raw-autopipe", "wire"],
  finer: 2,
  audit: true,
  variants: [64, 1_024].map((flight) => ({ label: `${flight} locks`, flight })),
  metrics: [
    ...metrics.filter(({ key }) => key !== "takeP50"),
    { key: "redisUs", label: "Redis CPU µs / cycle", ratio: true },
  ],
  worker: {
    audit,
    warm: (w, { flight }) => run(flight)(w, WARM_MS),
    run: (w, { flight, ms }) => run(flight)(w, ms),
  },
  warm: ({ children: [child], variant: { flight } }) => child.call("warm", { flight }),
  measure: ({ children: [child], variant: { flight }, ...rest }) => {
    const withFlight = { call: (name, args) => child.call(name, { ...args, flight }) };
    return measure({ children: [withFlight], ...rest });
  },
};
