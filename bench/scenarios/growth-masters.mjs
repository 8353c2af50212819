// A lock on more and more masters.
import { measure, metrics, worker } from "../work/serial.mjs";

export default {
  id: "growth-masters",
  title: "more masters",
  order: 23,
  floors: ["raw"],
  peers: () => false,
  pin: "apart",
  finer: 2,
  variants: [1, 3, 5, 7].map((x) => ({ label: `${x} masters`, x, servers: x })),
  grows: { by: "masters", figures: ["p50", "sentPer", "cpuUs"] },
  metrics,
  worker: worker(),
  measure,
};
