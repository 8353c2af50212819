-- Undoes one acquire or nested acquire whose outcome is unknown or unwanted, and leaves a tombstone that refuses it
-- should it arrive later still. A nested call is undone alone: the owner's other holds stay as they are.
--
-- KEYS
--   lock          hash     owner -> hold count
--   channel       channel  where releases are announced
--   tombstone     string   of the wire id, or of the nested call
-- ARGV
--   owner         text     clientId:n
--   count         int      holds without the undone one; 0 gives the lock back
--   left          int      ms that the longest other hold has to go; unused with count 0
--   tombstoneTtl  ms       how long a command may be late
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   1             there was something to undo
--   0             there was not, or an earlier run has undone it
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/bury

local lock, channel, tombstone = KEYS[1], KEYS[2], KEYS[3]
local owner, count, left, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if not bury(tombstone, tombstoneTtl) then
  return 0
end
local current = redis.call('HGET', lock, owner)
if not current or tonumber(current) <= tonumber(count) then
  return 0
end
if count ~= '0' and left ~= '0' then
  redis.call('PEXPIRE', lock, left)
  redis.call('HSET', lock, owner, count)
  return 1
end
redis.call('HDEL', lock, owner)
announce(publish, channel, '0')
return 1
