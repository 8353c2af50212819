// A lock that is first come first served over all processes, beside the plain lock and a blocking list.
import { worker } from "../work/contend.mjs";
import { measureCrowd, processMetrics, warmCrowd } from "../work/crowd.mjs";

export default {
  id: "fair",
  title: "fair hand-over",
  order: 7,
  floors: ["raw-blpop"],
  ours: ["holdfast", "holdfast-fair"],
  peers: () => false,
  variants: [
    { label: "16 waiters in one process", procs: 1, crowd: [16] },
    { label: "4 processes × 8 waiters", procs: 4, crowd: [8, 8, 8, 8] },
  ],
  metrics: processMetrics,
  worker,
  warm: (context) => warmCrowd(context, context.variant.crowd),
  measure: (context) =>
    measureCrowd(context, { crowd: context.variant.crowd, windowMs: 3 * context.sliceMs }),
};
