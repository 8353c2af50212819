import { make } from "../lib/raw.mjs";

export const meta = {
  name: "raw-autopipe",
  floor: true,
  client: "ioredis",
  notes: "raw with enableAutoPipelining: what sending together the commands of one tick brings by itself",
};
export const create = make({ options: { enableAutoPipelining: true } });
