-- Notes the outcome of a call, for when it is sent again. When memory is short, a first write that needs none lets the
-- next ones pass.
local function write_marker(marker, outcome, ttl)
  redis.call('DEL', marker)
  redis.call('SET', marker, outcome, 'PX', ttl)
end
