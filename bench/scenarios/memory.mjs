// What a held lock and a waiter keep in memory: the slope between few and many, after gc, in a fresh process.
import { sleep } from "../lib/stats.mjs";

const TTL = 120_000;
const FLIGHT = 200;
const SETTLE_MS = 150;

/** Bytes of the heap, once nothing is left to collect. */
async function heap() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await sleep(5);
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, rss };
}

const worker = {
  prepare: (w) => w.inst.prepare?.("bench:memory"),
  async warm(w) {
    // A floor that has to be prepared for each key has none for this.
    if (w.inst.prepare) return;
    for (let i = 0; i < 200; i++) await w.inst.release(await w.inst.acquire("bench:warm", TTL));
  },
  /** So many locks in all are held; `kept`: by the library itself. */
  async holds(w, { upTo, kept }) {
    w.state.held ??= [];
    const { held } = w.state;
    const take = kept ? w.inst.hold : w.inst.acquire;
    let next = held.length;
    const task = async () => {
      while (next < upTo) {
        const i = next++;
        held[i] = await take(`bench:memory:${i}`, TTL);
      }
    };
    await Promise.all(Array.from({ length: FLIGHT }, task));
    return heap();
  },
  /** So many calls in all wait for one lock, which this process holds. */
  async waiters(w, { upTo }) {
    w.state.waiting ??= 0;
    w.state.held ??= await w.inst.acquire("bench:memory", TTL);
    for (; w.state.waiting < upTo; w.state.waiting++) w.inst.acquire("bench:memory", TTL).catch(() => {});
    await sleep(SETTLE_MS);
    return heap();
  },
};

async function used(server) {
  await sleep(30);
  const { used_memory: all, mem_clients_normal: clients } = await server.info("memory");
  return { all: Number(all), data: Number(all) - Number(clients) };
}

async function measure({ children: [child], servers: [server], variant }) {
  const { what, few, many, kept = false } = variant;
  await server.flush();
  await child.call("prepare");
  const grow = async (upTo) => {
    const client = await child.call(what, { upTo, kept }, 30_000);
    return { ...client, redis: await used(server) };
  };
  const before = await grow(few);
  const after = await grow(many);
  const n = many - few;
  // A waiter may have a connection of its own, a hold has not; buffers of the one connection are no part of a hold.
  const counted = what === "waiters" ? "all" : "data";
  return {
    heapPer: (after.heap - before.heap) / n,
    rssPer: (after.rss - before.rss) / n,
    redisPer: (after.redis[counted] - before.redis[counted]) / n,
  };
}

export default {
  id: "memory",
  title: "memory",
  order: 11,
  floors: ["raw"],
  fresh: true,
  peers: ({ can = [] }, { kept }) => !kept || can.includes("renew"),
  variants: [
    { label: "a hold with a lease", what: "holds", few: 1_200, many: 5_200 },
    { label: "a hold that is renewed", what: "holds", few: 1_200, many: 5_200, kept: true, ttl: TTL },
    { label: "a waiter", what: "waiters", few: 100, many: 1_100, floors: ["raw-fifo", "raw-blpop"] },
  ],
  metrics: [
    { key: "heapPer", label: "client heap B", ratio: true },
    { key: "rssPer", label: "client RSS B" },
    { key: "redisPer", label: "Redis used_memory B", ratio: true },
  ],
  worker,
  measure,
};
