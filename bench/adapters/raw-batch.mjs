import { createHash } from "node:crypto";
import { make } from "../lib/raw.mjs";

export const meta = {
  name: "raw-batch",
  floor: true,
  client: "ioredis",
  notes: "raw, but one EVAL renews up to 500 locks",
};

const BATCH = 500;
const EXTEND_MANY = `local n = 0
for i, key in ipairs(KEYS) do
  if redis.call('get', key) == ARGV[i + 1] then n = n + redis.call('pexpire', key, ARGV[1]) end
end
return n`;
const SHA = createHash("sha1").update(EXTEND_MANY).digest("hex");

async function renewMany(redis, holds, ttl) {
  for (let i = 0; i < holds.length; i += BATCH) {
    const part = holds.slice(i, i + BATCH);
    const args = [...part.map(({ key }) => key), ttl, ...part.map(({ value }) => value)];
    redis
      .evalsha(SHA, part.length, ...args)
      .catch(() => redis.eval(EXTEND_MANY, part.length, ...args))
      .catch(() => {});
  }
}

export const create = make({ renew: renewMany });
