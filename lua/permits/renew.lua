-- Renews many permits. Never brings back a permit that has ended, never shortens a lease. A key that holds other data
-- by now does not disturb its neighbours. When memory is short, a first write that needs none lets the next ones pass.
--
-- KEYS
--   leases...  zset  permit id (16 bytes) -> ms of the server's clock at which its lease ends; one for each permit
-- ARGV
--   lease      ms    of each from now on, at least
--   ids...     text  32 hex digits
-- REPLY
--   {r, ...}   for each permit 1 renewed, 0 gone
-- INCLUDE shared/clock
-- INCLUDE shared/counts

local now = server_time()
redis.pcall('ZREM', leases[1], '')
local replies = {}
for i, key in ipairs(leases) do
  local member = raw(ARGV[i + 1])
  local ends = redis.pcall('ZSCORE', key, member)
  replies[i] = 0
  if type(ends) == 'string' and tonumber(ends) > now then
    redis.call('ZADD', key, 'XX', 'GT', now + lease, member)
    replies[i] = 1
  end
end
return replies
