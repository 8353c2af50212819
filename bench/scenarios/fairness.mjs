// Processes with very different numbers of waiters, and many with few: does handing over inside a process starve the others?
import { worker } from "../work/contend.mjs";
import { measureCrowd, processMetrics, warmCrowd } from "../work/crowd.mjs";

const variant = (crowd, label) => ({ label, crowd, procs: crowd.length });

export default {
  id: "fairness",
  title: "processes of different size",
  order: 6,
  floors: ["raw-blpop"],
  ours: ["holdfast", "holdfast-fenced", "holdfast-write"],
  peers: () => false,
  variants: [
    variant([16, 8, 2, 1], "4 processes × 16, 8, 2 and 1 waiters"),
    variant(new Array(8).fill(4), "8 processes × 4 waiters"),
  ],
  metrics: processMetrics,
  worker,
  warm: (context) => warmCrowd(context, context.variant.crowd),
  // A process keeps the lock for up to 50 ms: each has to have its turn several times.
  measure: (context) =>
    measureCrowd(context, { crowd: context.variant.crowd, windowMs: 20 * context.sliceMs }),
};
