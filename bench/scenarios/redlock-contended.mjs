// Several processes after one lock of three masters, where votes can be split. Only the clock checks exclusion: a counter on
// one master is in no order with a majority of the others.
import { worker } from "../work/contend.mjs";
import { measureCrowd, processMetrics, warmCrowd } from "../work/crowd.mjs";

const CROWD = [4, 4, 4, 4];
/** Long enough that a master has time to answer on a busy machine: a hundredth of it. */
const TTL = 10_000;

export default {
  id: "redlock-contended",
  title: "several masters, contended",
  order: 13,
  floors: ["raw", "raw-random"],
  peers: ({ can = [] }) => can.includes("masters"),
  variants: [{ label: "3 masters, 4 processes × 4 waiters", servers: 3, procs: CROWD.length }],
  metrics: processMetrics,
  worker,
  // Rounds over several masters are slow: as many as elsewhere take longer.
  warm: (context) => warmCrowd(context, [1, 1, 1, 1], { ttl: TTL, windowMs: 3_000 }),
  measure: (context) =>
    measureCrowd(context, { crowd: CROWD, windowMs: 4 * context.sliceMs, ttl: TTL, counter: false }),
};
