import { make, version } from "../lib/holdfast.mjs";

export const meta = {
  name: "holdfast-multi-lock",
  family: "holdfast",
  version,
  client: "ioredis",
  notes: "MultiLock of all the keys of one call, on one client",
};

export const create = make(
  ([client], keys, { MultiLock }) => new MultiLock(...keys.split(" ").map((key) => client.getLock(key))),
);
