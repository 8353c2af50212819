import { make } from "../lib/raw.mjs";

export const meta = {
  name: "raw-random",
  floor: true,
  client: "ioredis",
  notes: "raw with a random pause of up to 10 ms after each lost round, as the Redlock algorithm asks for",
};
export const create = make({ pause: () => Math.random() * 10 });
