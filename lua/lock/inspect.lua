-- What a lock's keys say: of every kind, since only they know which it is. A hash that is no lock is left alone, however
-- large it is.
--
-- KEYS
--   lock     hash    owner -> hold count; of a read-write lock also "mode"
--   queue    list    waiters of a fair lock in their order
--   counter  string  the last fencing token
-- REPLY
--   {pttl, fenced, {waiter, ...}, {field, value, ms, ...}}  fenced: 1 or 0; ms: of a read hold, else 0
--   {}                                                      no lock
-- FLAGS no-writes
-- INCLUDE shared/reads

local lock, queue, counter = KEYS[1], KEYS[2], KEYS[3]

if redis.call('TYPE', lock).ok ~= 'hash' then
  return {}
end
local mode = redis.call('HGET', lock, 'mode')
local shared = mode == 'read' or mode == 'write'
if not shared and redis.call('HLEN', lock) > 1 then
  return {}
end
local holders = {}
local fields = redis.call('HGETALL', lock)
for i = 1, #fields, 2 do
  holders[#holders + 1] = fields[i]
  holders[#holders + 1] = fields[i + 1]
  holders[#holders + 1] = shared and reads_left(lock, fields[i], fields[i + 1]) or 0
end
local waiters = redis.call('TYPE', queue).ok == 'list' and redis.call('LRANGE', queue, 0, -1) or {}
return {redis.call('PTTL', lock), redis.call('EXISTS', counter), waiters, holders}
