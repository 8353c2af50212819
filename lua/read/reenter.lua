-- Adds one read hold to those of an owner that reads or writes already. The count is absolute, since only the owner's
-- process changes it, so that a command that is sent twice counts once. Never creates a lock, never lowers its TTL.
--
-- KEYS
--   lock       hash    "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   tombstone  string  exists once this call was given up
-- ARGV
--   owner      text    clientId:n
--   field      text    clientId:n:write
--   count      int     read holds with this one
--   lease      ms      of this hold; TTL of the lock from now on, at least
-- REPLY
--   1          granted
--   0          the owner has nothing any more, nor has anybody else
--   -1         the owner has nothing any more, but another has
--   2          this call is over, or came out of order
--   3          its read holds are gone, but it writes
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/reads

local lock, tombstone = KEYS[1], KEYS[2]
local owner, field, count, lease = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('EXISTS', tombstone) == 1 then
  return 2
end
local current = redis.call('HGET', lock, owner) or 0
local left, last = reads_left(lock, owner, current)
if left == 0 then
  if redis.call('HEXISTS', lock, field) == 0 then
    return why_not_reading(lock, owner)
  end
  set_reads(lock, owner, {}, last)
  if count ~= '1' then
    return 3
  end
  current = 0
end
local missing = tonumber(count) - tonumber(current)
if missing ~= 0 and missing ~= 1 then
  return 2
end
local hold = read_hold(lock, owner, count)
if redis.call('PTTL', hold) < tonumber(lease) then
  redis.call('SET', hold, '1', 'PX', lease)
end
redis.call('HSET', lock, owner, count)
raise_ttl(lock, lease)
return 1
