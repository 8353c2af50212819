import { makeMany } from "../lib/raw.mjs";

export const meta = {
  name: "raw-8-in-series",
  floor: true,
  client: "ioredis",
  notes: "all the keys of one call by raw's two scripts, one after the other",
};

export const create = makeMany(async (keys, one) => {
  const answers = [];
  for (const key of keys) answers.push(await one(key));
  return answers;
});
