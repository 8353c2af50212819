-- The writers that wait for a read-write lock, each with the ms of the server's clock until which it counts as alive.
-- INCLUDE shared/clock
-- INCLUDE shared/raise_ttl

-- Lets readers see that this writer waits; `aliveFor` '0' or no writer: nobody.
local function advertise_writer(writers, writer, aliveFor)
  if writer == '' or aliveFor == '0' then
    return
  end
  local now = server_time()
  redis.call('ZREMRANGEBYSCORE', writers, '-inf', now)
  redis.call('ZADD', writers, now + aliveFor, writer)
  raise_ttl(writers, aliveFor)
end
