-- Gives back one read hold: sets the owner's read holds to those that are left. The last reader deletes the lock and
-- announces it. A tombstone is left when the owner reads no more: a release that is sent again finds it and answers as
-- the first one did.
--
-- KEYS
--   lock          hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel       channel  where releases are announced
--   tombstone     string   exists once this wire id, or this call that leaves holds, is over
-- ARGV
--   owner         text     clientId:n
--   left          int      ms that the owner's longest hold left, on either side, has to go; 0 if there is none
--   tombstoneTtl  ms       how long a command may be sent again
--   publish       text     PUBLISH or SPUBLISH
--   terms...      int      ms that each of the read holds left has to go
-- REPLY
--   1             done, now or by an earlier run
--   0             the lock is gone
--   -1            another holds it
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/announce_lapse
-- INCLUDE shared/reads
-- INCLUDE shared/write_tombstone

local lock, channel, tombstone = KEYS[1], KEYS[2], KEYS[3]
local owner, left, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local terms = terms_from(ARGV, 5)

if redis.call('HEXISTS', lock, owner) == 0 then
  if redis.call('EXISTS', tombstone) == 1 then
    return 1
  end
  local why = why_not_reading(lock, owner)
  announce_lapse(lock, publish, channel, '0')
  return why
end
if left ~= '0' and redis.call('EXISTS', tombstone) == 1 then
  return 1
end
if #terms == 0 then
  write_tombstone(tombstone, tombstoneTtl)
end
if change_reads(lock, owner, terms, left) then
  announce(publish, channel, '0')
end
return 1
