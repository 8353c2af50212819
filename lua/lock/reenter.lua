-- Adds one hold to a lock that the owner has. The count is absolute, since only its own process changes it, so
-- that a command that is sent twice counts once. Never creates a lock, never lowers its TTL.
--
-- KEYS
--   lock       hash    owner -> hold count
--   tombstone  string  exists once this call was given up
-- ARGV
--   owner      text    clientId:n
--   count      int     hold count with this hold
--   lease      ms      TTL of the lock from now on, at least
-- REPLY
--   1          granted
--   0          the lock is gone
--   -1         another holds it
--   2          this call is over, or came out of order
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/why_not_held

local lock, tombstone = KEYS[1], KEYS[2]
local owner, count, lease = ARGV[1], ARGV[2], ARGV[3]

if redis.call('EXISTS', tombstone) == 1 then
  return 2
end
local current = redis.call('HGET', lock, owner)
if not current then
  return why_not_held(lock)
end
local missing = tonumber(count) - tonumber(current)
if missing ~= 0 and missing ~= 1 then
  return 2
end
redis.call('HSET', lock, owner, count)
raise_ttl(lock, lease)
return 1
