// Locks that the library itself keeps, looked at for long enough to see two renewals of each.
import { measureRenewals, metrics, worker } from "../work/renew.mjs";

const count = (locks, ttl, windowMs, more) => ({
  label: `${locks.toLocaleString("en").replaceAll(",", " ")} locks, TTL ${ttl / 1_000} s`,
  locks,
  ttl,
  windowMs,
  ...more,
});

export default {
  id: "renewals",
  title: "renewals",
  order: 10,
  floors: ["raw", "raw-batch"],
  peers: ({ can = [] }) => can.includes("renew"),
  variants: [
    count(1_000, 1_400, 2_300),
    count(10_000, 9_000, 15_000, { full: true, repeats: 2 }),
    count(100_000, 30_000, 50_000, { full: true, repeats: 1, patience: 60_000 }),
  ],
  metrics,
  worker,
  warm: () => {},
  measure: measureRenewals,
};
