-- The writers that wait for a read-write lock, each with the ms of the server's clock until which it counts as alive.
-- INCLUDE shared/raise_ttl

-- Lets readers see that this writer waits.
local function advertise(writers, writer, now, aliveFor)
  redis.call('ZADD', writers, now + aliveFor, writer)
  raise_ttl(writers, aliveFor)
end
