-- Sets the number of a semaphore or latch that has none, once. Sent again it answers as it did.
--
-- KEYS
--   number     string   free permits, or a latch's count
--   channel    channel  where waiters are told
--   marker     string   what this call was answered
-- ARGV
--   count      int      the number
--   message    text     what waiters are told
--   markerTtl  ms       how long a call may be sent again
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   1          set, now or by an earlier run
--   0          there is one already
-- INCLUDE shared/announce
-- INCLUDE shared/mark

local number, channel, marker = KEYS[1], KEYS[2], KEYS[3]
local count, message, markerTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local earlier = redis.call('GET', marker)
if earlier then
  return tonumber(earlier)
end
if redis.call('GET', number) then
  mark(marker, '0', markerTtl)
  return 0
end
redis.call('SET', number, count)
mark(marker, '1', markerTtl)
announce(publish, channel, message)
return 1
