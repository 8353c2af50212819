import { make, version } from "../lib/holdfast.mjs";

export const meta = {
  name: "holdfast-write",
  family: "holdfast",
  version,
  client: "ioredis",
  notes: "the write side of getReadWriteLock",
};

export const create = make(([client], key) => client.getReadWriteLock(key).writeLock());
