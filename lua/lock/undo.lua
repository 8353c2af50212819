-- Undoes acquires, or one nested acquire, whose outcome is unknown or unwanted, and leaves a tombstone for each that
-- refuses it should it arrive later still. A nested call is undone alone: the owner's other holds stay as they are.
--
-- KEYS
--   lock           hash     owner -> hold count
--   channel        channel  where releases are announced
--   tombstones...  string   of each wire id, or of the nested call
-- ARGV
--   count          int      holds without the undone one; 0 gives the lock back
--   left           int      ms that the longest other hold has to go; unused with count 0
--   tombstoneTtl   ms       how long a command may be late
--   publish        text     PUBLISH or SPUBLISH
--   owners...      text     clientId:n, one for each tombstone
-- REPLY
--   1              there was something to undo
--   0              there was not, or an earlier run has undone it
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/write_tombstone

local lock, channel, tombstones = KEYS[1], KEYS[2], KEYS
local count, left, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- All tombstones are written before anything else can fail.
local ended = {}
for i = 3, #tombstones do
  if write_tombstone(tombstones[i], tombstoneTtl) then
    ended[#ended + 1] = ARGV[i + 2]
  end
end
local undone = 0
for _, owner in ipairs(ended) do
  local current = redis.call('HGET', lock, owner)
  if current and tonumber(current) > tonumber(count) then
    undone = 1
    if count ~= '0' and left ~= '0' then
      redis.call('PEXPIRE', lock, left)
      redis.call('HSET', lock, owner, count)
    else
      redis.call('HDEL', lock, owner)
      announce(publish, channel, '0')
    end
  end
end
return undone
