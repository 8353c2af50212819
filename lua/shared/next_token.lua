-- Counts up to the next fencing token: one more than the last, and at least the server's clock in microseconds. So a
-- server that has forgotten the last one cannot fall behind it.
local function next_token(counter)
  local token = redis.call('INCR', counter)
  local time = redis.call('TIME')
  local floor = time[1] * 1000000 + time[2]
  if token < floor then
    redis.call('SET', counter, string.format('%.0f', floor))
  end
end
