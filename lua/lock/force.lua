-- Gives a lock back, whoever holds it.
--
-- KEYS
--   lock     hash     owner -> hold count
--   channel  channel  where releases are announced
-- ARGV
--   publish  text     PUBLISH or SPUBLISH
-- REPLY
--   1        it was held
--   0        it was free
-- FLAGS allow-oom
-- INCLUDE shared/announce

local lock, channel = KEYS[1], KEYS[2]
local publish = ARGV[1]

-- HLEN refuses a key that holds other data; DEL would delete it.
if redis.call('HLEN', lock) == 0 then
  return 0
end
redis.call('DEL', lock)
announce(publish, channel, '0')
return 1
