-- Sets how many permits there are, the ones that are out included. With more out than that, the free ones fall below 0
-- until enough have come back. Running it again is as good as once.
--
-- KEYS
--   permits    string   free permits
--   leases     zset     permit id (16 bytes) -> ms of the server's clock at which its lease ends
--   channel    channel  where free permits are announced
--   marker     string   exists once this call is done
-- ARGV
--   count      int      how many
--   markerTtl  ms       how long a call may be sent again
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   1          done, now or by an earlier run
-- INCLUDE shared/clock
-- INCLUDE shared/counts
-- INCLUDE shared/mark

local permits, leases, channel, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local count, markerTtl, publish = ARGV[1], ARGV[2], ARGV[3]

if redis.call('EXISTS', marker) == 0 then
  local free = prune(permits, leases, server_time(), publish, channel)
  mark(marker, '1', markerTtl)
  give_back(permits, count - free - redis.call('ZCARD', leases), publish, channel)
end
return 1
