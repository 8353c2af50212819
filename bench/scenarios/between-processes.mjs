// One lock, wanted by several processes that ask again at once.
import { worker } from "../work/contend.mjs";
import { measureCrowd, processMetrics, warmCrowd } from "../work/crowd.mjs";

const variant = (procs, waiters, more) => ({
  label: `${procs} processes × ${waiters} waiters`,
  procs,
  crowd: new Array(procs).fill(waiters),
  ...more,
});

export default {
  id: "between-processes",
  title: "hand-over between processes",
  order: 5,
  floors: ["raw-blpop"],
  variants: [variant(4, 8), variant(16, 2, { peersInFull: true })],
  metrics: processMetrics,
  worker,
  warm: (context) => warmCrowd(context, context.variant.crowd),
  measure: (context) =>
    measureCrowd(context, { crowd: context.variant.crowd, windowMs: 4 * context.sliceMs }),
};
