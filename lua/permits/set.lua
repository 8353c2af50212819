-- Sets how many permits there are, the ones that are out included. If more are out than that, the number of free
-- permits is below 0 until enough have come back. Running it again is as good as once; a call that comes after a later one
-- of its client has been overruled, and changes nothing.
--
-- KEYS
--   permits    string   free permits
--   leases     zset     permit id (16 bytes) -> ms of the server's clock at which its lease ends
--   channel    channel  where free permits are announced
--   marker     string   the last of the client's calls of this kind that was done
-- ARGV
--   count      int      how many
--   call       int      the number of this call; the client's later calls have higher ones
--   markerTtl  ms       how long a call may be late
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   1
-- INCLUDE shared/clock
-- INCLUDE shared/counts
-- INCLUDE shared/write_marker

local last = redis.call('GET', marker)
if last and tonumber(last) >= tonumber(call) then
  return 1
end
local free = prune(permits, leases, server_time(), publish, channel)
local wanted = count - redis.call('ZCARD', leases)
write_marker(marker, call, markerTtl)
if redis.call('EXISTS', permits) == 0 or free ~= wanted then
  redis.call('SET', permits, wanted, 'KEEPTTL')
  redis.pcall(publish, channel, count)
end
return 1
