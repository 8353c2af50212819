import { make, version } from "../lib/holdfast.mjs";

export const meta = {
  name: "holdfast-fair",
  family: "holdfast",
  version,
  client: "ioredis",
  notes: "getFairLock",
};

export const create = make(([client], key) => client.getFairLock(key));
