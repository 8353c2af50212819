-- Gives back one hold. If holds are left, the count and the TTL are set to theirs. Otherwise the lock is deleted, the
-- release is announced, and a tombstone is left: a release that is sent again finds it and answers as the first one
-- did.
--
-- KEYS
--   lock          hash     owner -> hold count
--   channel       channel  where releases are announced
--   tombstone     string   exists once this wire id, or this call that leaves holds, is over
-- ARGV
--   owner         text     clientId:n
--   count         int      holds left; 0 gives the lock back
--   left          int      ms that the longest hold left has to go; unused with count 0
--   tombstoneTtl  ms       how long a command may be sent again
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   1             done, now or by an earlier run
--   0             the lock is gone
--   -1            another holds it
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/announce_lapse
-- INCLUDE shared/update_hold
-- INCLUDE shared/why_not_held

local lock, channel, tombstone = KEYS[1], KEYS[2], KEYS[3]
local owner, count, left, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if count ~= '0' and left ~= '0' then
  return update_hold(lock, tombstone, owner, count, left) and 1 or why_not_held(lock)
end
if redis.call('HDEL', lock, owner) == 1 then
  redis.call('SET', tombstone, '1', 'PX', tombstoneTtl)
  announce(publish, channel, '0')
  return 1
end
if redis.call('EXISTS', tombstone) == 1 then
  return 1
end
announce_lapse(lock, publish, channel, '0')
return why_not_held(lock)
