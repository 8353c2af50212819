import { make, version } from "../lib/holdfast.mjs";

export const meta = {
  name: "holdfast-fenced",
  family: "holdfast",
  version,
  client: "ioredis",
  notes: "getFencedLock",
};

export const create = make(([client], key) => client.getFencedLock(key));
