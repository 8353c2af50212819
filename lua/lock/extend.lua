-- Sets the TTL of a lock that the owner has, up or down.
--
-- KEYS
--   lock   hash  owner -> hold count
-- ARGV
--   owner  text  clientId:n
--   lease  ms    TTL of the lock
-- REPLY
--   1      done
--   0      the lock is gone
--   -1     another holds it
-- INCLUDE shared/absence

local lock = KEYS[1]
local owner, lease = ARGV[1], ARGV[2]

if redis.call('HEXISTS', lock, owner) == 0 then
  return absence(lock)
end
redis.call('PEXPIRE', lock, lease)
return 1
