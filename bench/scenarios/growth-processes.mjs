// One lock, wanted by more and more processes of four waiters.
import { worker } from "../work/contend.mjs";
import { measureCrowd, processMetrics, warmCrowd } from "../work/crowd.mjs";

const WAITERS = 4;

export default {
  id: "growth-processes",
  title: "more processes",
  order: 22,
  floors: ["raw-blpop"],
  peers: () => false,
  variants: [1, 2, 4, 8, 16].map((x) => ({
    label: `${x} processes × ${WAITERS} waiters`,
    x,
    procs: x,
    crowd: new Array(x).fill(WAITERS),
  })),
  grows: { by: "processes", figures: ["handOvers", "gapP50", "sentPer", "executedPer", "cpuUs"] },
  metrics: processMetrics,
  worker,
  warm: (context) => warmCrowd(context, context.variant.crowd),
  measure: (context) =>
    measureCrowd(context, { crowd: context.variant.crowd, windowMs: 2 * context.sliceMs }),
};
