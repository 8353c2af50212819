-- Notes what a call came to, for when it is sent again. A write that needs no memory comes first: before Redis 7 it lets
-- the next ones pass where memory is short.
local function write_marker(marker, outcome, ttl)
  redis.call('DEL', marker)
  redis.call('SET', marker, outcome, 'PX', ttl)
end
