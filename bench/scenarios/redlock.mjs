import { measure, metrics, worker } from "../work/serial.mjs";

export default {
  id: "redlock",
  title: "several masters, take + give back",
  order: 12,
  floors: ["raw"],
  pin: true,
  finer: 2,
  audit: true,
  peers: ({ can = [] }) => can.includes("masters"),
  variants: [3, 5].map((servers) => ({ label: `${servers} masters`, servers })),
  metrics,
  worker: worker(),
  measure,
};
