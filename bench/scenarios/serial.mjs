import { measure, metrics, worker } from "../work/serial.mjs";

export default {
  id: "serial",
  title: "take + give back, one after the other",
  order: 1,
  floors: ["raw", "wire"],
  pin: "together",
  finer: 2,
  audit: true,
  variants: [{ label: "one lock" }],
  metrics,
  worker: worker(),
  measure,
};
