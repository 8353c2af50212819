-- Notes the outcome of a call, for when it is sent again. The first write needs no memory: before Redis 7 it lets the
-- next write pass when memory is short.
local function write_marker(marker, outcome, ttl)
  redis.call('DEL', marker)
  redis.call('SET', marker, outcome, 'PX', ttl)
end
