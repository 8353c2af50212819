-- Gives back one write hold. If write holds are left, their count and the TTL are set. Otherwise the writer's read
-- holds keep the lock, which is a downgrade, or the lock is deleted; both are announced to all waiters. A tombstone is
-- left when the owner writes no more: a release that is sent again finds it and answers as the first one did.
--
-- KEYS
--   lock          hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel       channel  where releases are announced
--   tombstone     string   exists once this wire id, or this call that leaves holds, is over
-- ARGV
--   owner         text     clientId:n
--   field         text     clientId:n:write
--   count         int      write holds left
--   left          int      ms that the owner's longest hold left, on either side, has to go; 0 if there is none
--   tombstoneTtl  ms       how long a command may be sent again
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   1             done, now or by an earlier run
--   0             the lock is gone
--   -1            another holds it
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/announce_lapse
-- INCLUDE shared/end_write
-- INCLUDE shared/reads
-- INCLUDE shared/update_hold
-- INCLUDE shared/why_not_held
-- INCLUDE shared/write_tombstone

local lock, channel, tombstone = KEYS[1], KEYS[2], KEYS[3]
local owner, field, count, left, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if count ~= '0' then
  return update_hold(lock, tombstone, field, count, left) and 1 or why_not_held(lock)
end
if redis.call('HEXISTS', lock, field) == 0 then
  if redis.call('EXISTS', tombstone) == 1 then
    return 1
  end
  announce_lapse(lock, publish, channel, '1')
  return why_not_held(lock)
end
if left ~= '0' and redis.call('EXISTS', tombstone) == 1 then
  return 1
end
write_tombstone(tombstone, tombstoneTtl)
end_write(lock, field, reads_left(lock, owner, redis.call('HGET', lock, owner)))
announce(publish, channel, '1')
return 1
