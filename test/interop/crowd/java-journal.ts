/**
 * The JVMs of the crowd write their journal on the witness, by scripts that the call brings. These scripts also do what
 * the witness does for the processes of test/fleet.
 */
import type { Redis } from "ioredis";
import type { Stay } from "../../fleet/history.js";

/** The register and the counter are those of test/fleet/journal.mjs. */
export const ENTER = `
local inside, counter, journal, fence = KEYS[1], KEYS[3], KEYS[4], KEYS[5]
local id, entry, mode, token = ARGV[1], ARGV[2], ARGV[3] == '1' and 'read' or 'write', ARGV[4]
local met, all = {}, redis.call('HGETALL', inside)
for i = 1, #all, 2 do
  if not (mode == 'read' and all[i + 1] == 'read') then
    met[#met + 1] = all[i]
    redis.call('HDEL', inside, all[i])
  end
end
redis.call('HSET', inside, id, mode)
if token ~= '-' and tonumber(token) > tonumber(redis.call('GET', fence) or 0) then redis.call('SET', fence, token) end
redis.call('RPUSH', journal, entry .. ' ' .. (#met > 0 and table.concat(met, ',') or '-'))
return redis.call('GET', counter) or '0'`;

export const LEAVE = `
local inside, counter, journal, fence, writes = KEYS[1], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, entry, value, expected, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
redis.call('HDEL', inside, id)
if value ~= '' and (token == '-' or redis.call('GET', fence) == token) then
  redis.call('SET', counter, value)
  redis.call('INCR', writes)
end
local torn = expected ~= '' and (redis.call('GET', counter) or '0') ~= expected
redis.call('RPUSH', journal, entry .. (torn and ' torn' or ''))`;

/** The stays of all JVMs. */
export async function readJava(witness: Redis): Promise<Stay[]> {
  const stays = new Map<string, Stay>();
  for (const key of await witness.keys("journal:*")) {
    const process = key.slice("journal:".length);
    for (const line of await witness.lrange(key, 0, -1)) {
      const [what, id = "", ...words] = line.split(" ");
      if (what === "E") stays.set(id, entered(id, process, words));
      else {
        const [at, torn] = words;
        const known = { leftAt: Number(at), lost: what === "X", torn: torn === "torn" };
        stays.set(id, { ...(stays.get(id) as Stay), ...known });
      }
    }
  }
  return [...stays.values()];
}

function entered(id: string, process: string, words: readonly string[]): Stay {
  const [lock = "", askedAt, enteredAt, lease, deadline, owner = "", mode, token = "-", , met = "-"] = words;
  return {
    ...{ lock, id, process, owner, shared: mode === "shared", permits: 0, visits: [id] },
    askedAt: Number(askedAt),
    enteredAt: Number(enteredAt),
    until: deadline === "-" ? Number.POSITIVE_INFINITY : Number(deadline),
    renewed: deadline === "-",
    lease: Number(lease),
    ...{ leftAt: undefined, lost: false, refusedAt: undefined, place: undefined, torn: false },
    token: token === "-" ? undefined : BigInt(token),
    met: met === "-" ? [] : met.split(","),
  };
}
