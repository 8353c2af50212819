-- Gives a lock back, whoever holds it.
--
-- KEYS
--   lock          hash     owner -> hold count
--   channel       channel  where releases are announced
--   tombstone     string   the answer, once this call is over
-- ARGV
--   tombstoneTtl  ms       how long a command may be sent again
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   1             it was held
--   0             it was free
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/foreign
-- INCLUDE shared/write_tombstone

local lock, channel, tombstone = KEYS[1], KEYS[2], KEYS[3]
local tombstoneTtl, publish = ARGV[1], ARGV[2]

refuse_foreign(lock)
local held = redis.call('EXISTS', lock)
-- A call that is sent again must not take the lock from a later holder, also if the first run found no holder.
if not write_tombstone(tombstone, tombstoneTtl, held) then
  return tonumber(redis.call('GET', tombstone))
elseif held == 1 then
  redis.call('DEL', lock)
  announce(publish, channel, '0')
end
return held
