import { make } from "../lib/raw.mjs";

export const meta = {
  name: "raw",
  floor: true,
  client: "ioredis",
  notes:
    "EVALSHA to take, EVALSHA to give back; on several masters to all at once, up to a quorum. Refused: again after 1 ms. Renewals: one EVALSHA a lock at 80 % of the TTL, by one timer",
};
export const create = make();
