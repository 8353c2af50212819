// Locks that are held for long: how often they are renewed, and what that takes.
import { counting } from "../lib/redis.mjs";
import { sleep, sum } from "../lib/stats.mjs";

const WATCHED = 12;
/** Takes that are on their way at once. */
const FLIGHT = 500;
const LOOK_MS = 10;

export const worker = {
  async hold(w, { locks, ttl, tag }) {
    const held = [];
    w.state.held = held;
    let next = 0;
    const task = async () => {
      while (next < locks) {
        const i = next++;
        held[i] = await w.inst.hold(`bench:renew:${tag}:${i}`, ttl);
      }
    };
    await Promise.all(Array.from({ length: Math.min(FLIGHT, locks) }, task));
  },
  async drop(w) {
    const { held } = w.state;
    w.state.held = [];
    for (let i = 0; i < held.length; i += FLIGHT) {
      await Promise.all(held.slice(i, i + FLIGHT).map((hold) => w.inst.drop(hold)));
    }
  },
  mark: (w) => ({ sent: w.sent(), cpu: w.cpuMs() }),
  async heap(w) {
    for (let i = 0; i < 3; i++) {
      globalThis.gc();
      await sleep(5);
    }
    const { heapUsed, external } = process.memoryUsage();
    return { heap: heapUsed + external, sent: w.sent() };
  },
};

/** The locks, whatever else a client keeps there: what a library puts before and behind a name is its own. */
const locksOn = (server) => server.admin.keys("*bench:renew:*");

/** From outside: the TTL of some locks every few ms; a jump up is a renewal. */
async function watch(server, keys, ms) {
  const last = keys.map(() => Number.POSITIVE_INFINITY);
  const jumps = keys.map(() => []);
  const end = performance.now() + ms;
  while (performance.now() < end) {
    const pipeline = server.admin.pipeline();
    for (const key of keys) pipeline.pttl(key);
    const replies = await pipeline.exec();
    const at = performance.now();
    for (const [i, [, ttl]] of replies.entries()) {
      if (ttl > last[i]) jumps[i].push(at);
      last[i] = ttl;
    }
    await sleep(LOOK_MS);
  }
  const periods = jumps.flatMap((times) => times.slice(1).map((at, i) => at - times[i]));
  return {
    rounds: sum(jumps.map((times) => times.length)) / keys.length,
    period: periods.length ? sum(periods) / periods.length : Number.NaN,
  };
}

export async function measureRenewals({ children: [child], servers, repeat, variant }) {
  const [server] = servers;
  const { locks, ttl, windowMs, patience = 20_000 } = variant;
  await server.flush();
  await child.call("hold", { locks, ttl, tag: `r${repeat}` }, patience);
  const held = await locksOn(server);
  const watched = held.filter((_, i) => i % Math.ceil(held.length / WATCHED) === 0);
  const { result, redis } = await counting(servers, async () => {
    const before = await child.call("mark");
    const seen = await watch(server, watched, windowMs);
    const after = await child.call("mark");
    return { ...seen, sent: after.sent - before.sent, cpu: after.cpu - before.cpu };
  });
  const lost = held.length - (await locksOn(server)).length;
  await child.call("drop", {}, patience).catch((error) => {
    if (lost <= 0) throw error;
  });
  const { rounds, period, sent, cpu } = result;
  const renewed = rounds * locks;
  return {
    period,
    sentPer: (1_000 * sent) / renewed,
    executedPer: (1_000 * redis.executed) / renewed,
    cpuPer: (1_000 * cpu) / renewed,
    redisCpuPer: (1_000 * redis.cpuMs) / renewed,
    sentRound: sent / rounds,
    cpuRound: cpu / rounds,
    lost,
  };
}

export const metrics = [
  { key: "period", label: "period ms" },
  { key: "sentPer", label: "commands sent / 1000 renewals", ratio: true },
  { key: "executedPer", label: "commands run in Redis / 1000 renewals" },
  { key: "cpuPer", label: "client CPU ms / 1000 renewals", ratio: true },
  { key: "redisCpuPer", label: "Redis CPU ms / 1000 renewals", ratio: true },
  { key: "lost", label: "locks lost" },
];
