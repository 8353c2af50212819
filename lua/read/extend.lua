-- Sets the terms of an owner's read holds, up or down.
--
-- KEYS
--   lock       hash    "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   tombstone  string  exists once this call is over
-- ARGV
--   owner     text  clientId:n
--   left      int   ms that the owner's longest hold, on either side, has to go
--   terms...  int   ms that each of its read holds has to go
-- REPLY
--   1      done, now or by an earlier run
--   0      the owner's read holds are gone
--   -1     they are gone, and another holds the lock
-- INCLUDE shared/reads

local lock, tombstone = KEYS[1], KEYS[2]
local owner, left = ARGV[1], ARGV[2]

if redis.call('EXISTS', tombstone) == 1 then
  return 1
end
if reads_left(lock, owner, redis.call('HGET', lock, owner)) == 0 then
  return why_not_reading(lock, owner)
end
change_reads(lock, owner, terms_from(ARGV, 3), left)
return 1
