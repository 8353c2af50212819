-- How many permits are free, and how many are out. Permits whose leases have ended are taken back first.
--
-- KEYS
--   permits      string   free permits
--   leases       zset     permit id (16 bytes) -> ms of the server's clock at which its lease ends
--   channel      channel  where free permits are announced
-- ARGV
--   publish      text     PUBLISH or SPUBLISH
-- REPLY
--   {free, out}  free ones may be below 0, when there are to be fewer
-- FLAGS allow-oom
-- INCLUDE shared/clock
-- INCLUDE shared/counts

local permits, leases, channel = KEYS[1], KEYS[2], KEYS[3]
local publish = ARGV[1]

return {prune(permits, leases, server_time(), publish, channel), redis.call('ZCARD', leases)}
