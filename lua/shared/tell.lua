-- What clients tell of themselves, for people who look.
-- INCLUDE shared/clock
-- INCLUDE shared/raise_ttl

-- Notes names and values, instead of what was told before.
local function describe(client, ttl, ...)
  redis.call('DEL', client)
  redis.call('HSET', client, ...)
  redis.call('PEXPIRE', client, ttl)
end

-- Puts a client into the index, and takes out the clients whose time is over.
local function enlist(index, id, ttl)
  local now = server_time()
  redis.call('ZREMRANGEBYSCORE', index, '-inf', now)
  redis.call('ZADD', index, now + ttl, id)
  raise_ttl(index, ttl)
end
