// More and more locks that the library keeps.
import { measureRenewals, metrics, worker } from "../work/renew.mjs";

/** Renewed every third of it by this library, at 80 % of it by the floors. */
const short = (x) => ({ label: `${x} holds`, x, locks: x, ttl: 1_800, windowMs: 1_600 });
const long = (x, more) => ({ label: `${x} holds`, x, locks: x, ttl: 4_500, windowMs: 3_600, ...more });

/** Of fewer holds nothing can be seen in the heap of a process. */
const LEAST_SEEN = 1_000;

export default {
  id: "growth-holds",
  title: "more holds that are renewed",
  order: 21,
  floors: [],
  peers: () => false,
  variants: [
    short(10),
    short(100),
    short(1_000),
    long(10_000),
    { ...long(100_000), ttl: 30_000, windowMs: 26_000, patience: 90_000, full: true, repeats: 2 },
  ],
  grows: { by: "holds", figures: ["sentRound", "cpuRound", "heapAll"] },
  metrics: [
    { key: "heapAll", label: "client heap kB of all", ratio: true },
    { key: "sentRound", label: "commands sent / round", ratio: true },
    { key: "cpuRound", label: "client CPU ms / round", ratio: true },
    ...metrics.filter(({ key }) => key === "period" || key === "lost"),
  ],
  worker,
  warm: () => {},
  async measure(context) {
    const { children, variant, repeat } = context;
    const [child] = children;
    await context.servers[0].flush();
    const { patience, x } = variant;
    const empty = await child.call("heap");
    await child.call(
      "hold",
      { locks: variant.locks, ttl: variant.ttl, tag: `h${repeat}` },
      patience ?? 20_000,
    );
    const full = await child.call("heap", {}, patience);
    await child.call("drop", {}, patience ?? 20_000);
    const heapAll = x < LEAST_SEEN ? Number.NaN : (full.heap - empty.heap) / 1_000;
    return { ...(await measureRenewals(context)), heapAll };
  },
};
