import { makeMany } from "../lib/raw.mjs";

export const meta = {
  name: "raw-8-in-parallel",
  floor: true,
  client: "ioredis",
  notes: "all the keys of one call by raw's two scripts, all at once",
};

export const create = makeMany((keys, one) => Promise.all(keys.map(one)));
