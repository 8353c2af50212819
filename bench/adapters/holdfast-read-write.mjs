import { make, version } from "../lib/holdfast.mjs";

export const meta = {
  name: "holdfast-read-write",
  family: "holdfast",
  version,
  client: "ioredis",
  notes: "getReadWriteLock; a section that reads takes the read side",
};

export const create = make(([client], key, _library, mode) => {
  const lock = client.getReadWriteLock(key);
  return mode === "read" ? lock.readLock() : lock.writeLock();
});
