// Eight locks, all or none.
import { measure, metrics, worker } from "../work/serial.mjs";

const KEYS = Array.from({ length: 8 }, (_, i) => `bench:member:${i}`).join(" ");

export default {
  id: "multi-lock",
  title: "MultiLock of 8",
  order: 14,
  floors: ["raw-8-in-parallel", "raw-8-in-series", "wire-8-in-parallel"],
  ours: ["holdfast-multi-lock"],
  peers: () => false,
  pin: "together",
  finer: 2,
  variants: [{ label: "take + give back all, one after the other" }],
  metrics,
  worker: worker(KEYS),
  measure,
};
