import { measure, metrics, worker } from "../work/serial.mjs";

export default {
  id: "redlock",
  title: "several masters, take + give back",
  order: 12,
  floors: ["raw", "wire"],
  pin: "apart",
  finer: 2,
  audit: true,
  peers: ({ can = [] }) => can.includes("masters"),
  variants: [
    ...[3, 5].map((servers) => ({ label: `${servers} masters`, servers })),
    { label: "one of 3 masters slow by 50 ms", servers: 3, slowMs: 50 },
  ],
  metrics,
  worker: worker(),
  measure,
};
