-- Sets the TTL of a lock that the owner has, up or down.
--
-- KEYS
--   lock       hash    owner -> hold count
--   tombstone  string  exists once this call is over
-- ARGV
--   owner  text  clientId:n
--   lease  ms    TTL of the lock
-- REPLY
--   1      done, now or by an earlier run
--   0      the lock is gone
--   -1     another holds it
-- INCLUDE shared/why_not_held

local lock, tombstone = KEYS[1], KEYS[2]
local owner, lease = ARGV[1], ARGV[2]

if redis.call('EXISTS', tombstone) == 1 then
  return 1
end
if redis.call('HEXISTS', lock, owner) == 0 then
  return why_not_held(lock)
end
redis.call('PEXPIRE', lock, lease)
return 1
