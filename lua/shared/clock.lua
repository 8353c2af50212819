-- The server's clock in milliseconds: queues and tickets go by no other clock.
local function server_time()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
