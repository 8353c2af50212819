-- Ends a permit: given back, or given up by a call whose outcome is unknown, which must get nothing should it come
-- later. Run again, the script answers as the first time.
--
-- KEYS
--   permits       string   free permits
--   leases        zset     permit id (16 bytes) -> ms of the server's clock at which its lease ends
--   channel       channel  where free permits are announced
--   tombstone     string   the call that gave this id back, or "over"
-- ARGV
--   id            text     32 hex digits
--   call          text     names this call alone
--   tombstoneTtl  ms       how long a command may be sent again
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   1             given back, now or by an earlier run
--   0             no such permit, or its lease had ended
-- INCLUDE shared/clock
-- INCLUDE shared/counts
-- INCLUDE shared/write_marker

local ended = redis.call('GET', tombstone)
if ended then
  return ended == call and 1 or 0
end
local member = raw(id)
prune(permits, leases, server_time(), publish, channel)
local out = redis.call('ZSCORE', leases, member)
write_marker(tombstone, out and call or 'over', tombstoneTtl)
if not out then
  return 0
end
redis.call('ZREM', leases, member)
give_back(permits, 1, publish, channel)
return 1
