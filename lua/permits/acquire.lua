-- Takes one permit under a fresh id, for a lease. Running it again is as good as once: a permit that is out keeps its
-- id, and its lease is only raised. An id that was given back or given up has left a tombstone and gets nothing.
--
-- KEYS
--   permits    string   free permits
--   leases     zset     permit id (16 bytes) -> ms of the server's clock at which its lease ends
--   channel    channel  where free permits are announced
--   tombstone  string   exists once this id is over
-- ARGV
--   id         text     32 hex digits
--   lease      ms       how long it is good for
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   {1, free, ms}  granted; permits that are left; when the next lease ends, -1 if none does
--   {0, 0, ms}     none is free; likewise
--   {2, 0, 0}      this id is over
-- INCLUDE shared/clock
-- INCLUDE shared/counts

-- The end of the lease that Redisson gives to a permit taken without one.
local NEVER = 922337203685477

if redis.call('EXISTS', tombstone) == 1 then
  return {2, 0, 0}
end
local now = server_time()
local member = raw(id)
local free = prune(permits, leases, now, publish, channel)
local granted = 1
if redis.call('ZSCORE', leases, member) then
  redis.call('ZADD', leases, 'XX', 'GT', now + lease, member)
elseif free > 0 then
  redis.call('DECRBY', permits, 1)
  redis.call('ZADD', leases, now + lease, member)
  free = free - 1
  local ttl = redis.call('PTTL', permits)
  if ttl > 0 then
    redis.call('PEXPIRE', leases, ttl)
  end
else
  granted = 0
end
local ends = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]
return {granted, math.max(0, free), ends and tonumber(ends) < NEVER and ends - now or -1}
