-- What a lock's keys say: of every kind, since only they know which it is. A hash that is no lock is left alone, however
-- large it is or whatever numbers are in it.
--
-- KEYS
--   lock     hash    owner -> hold count; of a read-write lock also "mode"
--   queue    list    waiters of a fair lock in their order
--   counter  string  the last fencing token
-- REPLY
--   {pttl, fenced, mode, {waiter, ...}, {field, count, ms, ...}}  fenced: 1 or 0; mode: "" for none; ms: of a read hold
--   {}                                                            no lock
-- FLAGS no-writes
-- INCLUDE shared/reads

local lock, queue, counter = KEYS[1], KEYS[2], KEYS[3]

if redis.call('TYPE', lock).ok ~= 'hash' then
  return {}
end
local mode = redis.call('HGET', lock, 'mode')
local shared = mode == 'read' or mode == 'write'

local OWNER = '^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d+'
local MOST_DIGITS = 5
local function is_owner(field)
  return string.find(field, OWNER .. '$') or shared and (field == 'mode' or string.find(field, OWNER .. ':write$'))
end

if not shared and redis.call('HLEN', lock) > 1 then
  return {}
end
for _, field in ipairs(redis.call('HRANDFIELD', lock, 2)) do
  if not is_owner(field) then
    return {}
  end
end
local holders = {}
local fields = redis.call('HGETALL', lock)
for i = 1, #fields, 2 do
  local field, count = fields[i], fields[i + 1]
  if field ~= 'mode' then
    if not is_owner(field) or not string.find(count, '^%d+$') or shared and #count > MOST_DIGITS then
      return {}
    end
    holders[#holders + 1] = field
    holders[#holders + 1] = count
    holders[#holders + 1] = shared and reads_left(lock, field, count) or 0
  end
end
local waiters = redis.call('TYPE', queue).ok == 'list' and redis.call('LRANGE', queue, 0, -1) or {}
return {redis.call('PTTL', lock), redis.call('EXISTS', counter), shared and mode or '', waiters, holders}
