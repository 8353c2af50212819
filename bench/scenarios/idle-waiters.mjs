// One process holds, another has waiters. What do these send, and what do they cost, while nothing happens? Then the release.
import { counting } from "../lib/redis.mjs";
import { sleep } from "../lib/stats.mjs";
import { TTL as SHORT } from "../work/serial.mjs";

const KEY = "bench:idle";
const TTL = 120_000;
/** For waiters to be asleep; more of them need longer. */
const SETTLE_MS = 400;
/** Long enough to see the one try every `pollCap` (3 s). Peers poll many times a second. */
const COUNTED_MS = 3_400;
const COUNTED_OF_PEERS_MS = 400;
const PATIENCE_MS = 1_500;

const worker = {
  prepare: (w) => w.inst.prepare?.(KEY),
  async take(w) {
    w.state.hold = await w.inst.acquire(KEY, TTL);
  },
  async giveBack(w, { base }) {
    const asked = w.now(base);
    await w.inst.release(w.state.hold);
    return asked;
  },
  wait(w, { base, waiters }) {
    const waiting = { got: [], inside: 0, violations: 0 };
    w.state.waiting = waiting;
    const task = async () => {
      const hold = await w.inst.acquire(KEY, SHORT);
      waiting.got.push(w.now(base));
      // All waiters are in this process, and the section ends where the release is asked for. When the holder released bounds the rest.
      if (++waiting.inside > 1) waiting.violations++;
      waiting.inside--;
      await w.inst.release(hold);
    };
    waiting.done = Promise.all(Array.from({ length: waiters }, task));
    waiting.done.catch((error) => {
      waiting.error = error;
    });
  },
  mark: (w) => ({ sent: w.sent(), cpu: w.cpuMs() }),
  async drained(w, { patience }) {
    const { waiting } = w.state;
    const sent = w.sent();
    await Promise.race([waiting.done, sleep(patience)]);
    if (waiting.error) throw waiting.error;
    return { got: Float64Array.from(waiting.got), sent: w.sent() - sent, violations: waiting.violations };
  },
};

async function begin({ children: [holder, waiter], servers: [server] }, waiters) {
  await server.flush();
  await holder.call("prepare");
  await holder.call("take");
  const base = process.hrtime.bigint();
  await waiter.call("wait", { base, waiters });
  return base;
}

async function warm(context) {
  const [holder, waiter] = context.children;
  const base = await begin(context, 20);
  await sleep(100);
  await holder.call("giveBack", { base });
  await waiter.call("drained", { patience: PATIENCE_MS });
}

async function measure(context) {
  const { children, servers, meta, variant } = context;
  const [holder, waiter] = children;
  const { waiters, settleMs = SETTLE_MS, patience = PATIENCE_MS } = variant;
  const base = await begin(context, waiters);
  await sleep(settleMs);
  const { result, redis } = await counting(servers, async () => {
    const before = await waiter.call("mark");
    const start = performance.now();
    await sleep(meta.isPeer ? COUNTED_OF_PEERS_MS : COUNTED_MS);
    const after = await waiter.call("mark");
    const seconds = (performance.now() - start) / 1_000;
    return { seconds, sent: after.sent - before.sent, cpu: after.cpu - before.cpu };
  });
  const { seconds, sent, cpu } = result;
  // Asked for together: either may fail while the other is awaited.
  const [drained, released] = await Promise.all([
    waiter.call("drained", { patience }, patience + 5_000),
    holder.call("giveBack", { base }),
  ]);
  const got = drained.got.sort();
  const early = got.filter((at) => at < released).length;
  const all = got.length === waiters;
  return {
    sentRate: sent / seconds,
    executedRate: redis.executed / seconds,
    // By name, for the note below the table: what is sent while nothing happens.
    idleCommands: Object.fromEntries(Object.entries(redis.calls).map(([name, n]) => [name, n / seconds])),
    cpuPerS: cpu / seconds,
    first: got[early] - released,
    drain: all ? got[got.length - 1] - released : Number.NaN,
    perHandOverUs: all ? (1_000 * (got[got.length - 1] - released)) / waiters : Number.NaN,
    served: got.length - early,
    drainSent: drained.sent / got.length,
    early,
    violations: drained.violations + early,
    // Waiters are left: new processes for the next repeat.
    dirty: !all,
  };
}

export default {
  id: "idle-waiters",
  title: "idle waiters",
  order: 9,
  floors: ["raw-blpop"],
  variants: [
    { label: "200 waiters, another process holds", procs: 2, waiters: 200 },
    {
      label: "10 000 waiters, another process holds",
      procs: 2,
      waiters: 10_000,
      settleMs: 1_000,
      patience: 20_000,
      floors: [],
      peersInFull: true,
    },
  ],
  metrics: [
    { key: "sentRate", label: "commands sent/s" },
    { key: "executedRate", label: "commands run in Redis/s" },
    { key: "cpuPerS", label: "client CPU ms / s of waiting" },
    { key: "first", label: "release → first ms", ratio: true },
    { key: "drain", label: "release → all served ms", ratio: true },
    { key: "served", label: "served in time" },
    { key: "drainSent", label: "commands sent / waiter while served", ratio: true },
    { key: "early", label: "let in while held" },
  ],
  worker,
  warm,
  measure,
};
