-- Sets the lease of a permit anew. It announces a shorter one, as those who wait for its end may look too late. It does
-- so as one permit, since Redisson wakes as many threads as the message says. Running it again is as good as once. A
-- call that comes after a later one of its client has been overruled, and changes nothing.
--
-- KEYS
--   permits    string   free permits
--   leases     zset     permit id (16 bytes) -> ms of the server's clock at which its lease ends
--   channel    channel  where free permits are announced
--   marker     string   the last of the client's calls on this permit that was done
-- ARGV
--   id         text     32 hex digits
--   lease      ms       how long it is good for from now on
--   call       int      the number of this call; the client's later calls have higher ones
--   markerTtl  ms       how long a call may be late
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   1 done, now or by an earlier run, or a later call is; 0 no such permit, or its lease had ended
-- INCLUDE shared/clock
-- INCLUDE shared/counts
-- INCLUDE shared/write_marker

local last = redis.call('GET', marker)
if last and tonumber(last) >= tonumber(call) then
  return 1
end
local now = server_time()
local member = raw(id)
prune(permits, leases, now, publish, channel)
local ends = redis.call('ZSCORE', leases, member)
if not ends then
  return 0
end
redis.call('ZADD', leases, now + lease, member)
write_marker(marker, call, markerTtl)
if now + lease < tonumber(ends) then
  redis.pcall(publish, channel, 1)
end
return 1
