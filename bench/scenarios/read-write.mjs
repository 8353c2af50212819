// Of twenty sections nineteen read: a read-write lock lets these in together, a plain lock one after the other.
import { worker } from "../work/contend.mjs";
import { loopMetrics, measureCrowd, warmCrowd } from "../work/crowd.mjs";

export default {
  id: "read-write",
  title: "read-mostly, 95 to 5",
  order: 8,
  floors: [],
  ours: ["holdfast", "holdfast-read-write"],
  ratioTo: "holdfast",
  peers: () => false,
  variants: [
    { label: "16 tasks in one process", procs: 1, crowd: [16] },
    { label: "4 processes × 8 tasks", procs: 4, crowd: [8, 8, 8, 8] },
  ],
  metrics: loopMetrics.filter(({ key }) => !/^(handOvers|gap)/.test(key)),
  worker,
  warm: (context) => warmCrowd(context, context.variant.crowd, { readMostly: true }),
  measure: (context) =>
    measureCrowd(context, { crowd: context.variant.crowd, windowMs: 2 * context.sliceMs, readMostly: true }),
};
