-- Undoes one acquire or nested acquire of the read side whose outcome is unknown or unwanted, and leaves a tombstone
-- that refuses it should it arrive later still. A nested call is undone alone: the owner's other holds stay.
--
-- KEYS
--   lock          hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel       channel  where releases are announced
--   tombstone     string   of the wire id, or of the nested call
-- ARGV
--   owner         text     clientId:n
--   left          int      ms that the owner's longest other hold, on either side, has to go; 0 if there is none
--   tombstoneTtl  ms       how long a command may be late
--   publish       text     PUBLISH or SPUBLISH
--   terms...      int      ms that each of the other read holds has to go
-- REPLY
--   1             there was something to undo
--   0             there was not, or an earlier run has undone it
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/reads
-- INCLUDE shared/write_tombstone

local lock, channel, tombstone = KEYS[1], KEYS[2], KEYS[3]
local owner, left, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local terms = terms_from(ARGV, 5)

if not write_tombstone(tombstone, tombstoneTtl) then
  return 0
end
if tonumber(redis.call('HGET', lock, owner) or 0) <= #terms then
  return 0
end
if change_reads(lock, owner, terms, left) then
  announce(publish, channel, '0')
end
return 1
