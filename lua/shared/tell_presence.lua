-- What clients tell of themselves, for people who look.
-- INCLUDE shared/raise_ttl

-- Notes what a client tells, instead of what it told before.
local function tell(client, ttl, label, host, pid, since, told, holds, waits)
  redis.call('DEL', client)
  redis.call('HSET', client, 'label', label, 'host', host, 'pid', pid, 'since', since, 'told', told, 'holds', holds,
    'waits', waits)
  redis.call('PEXPIRE', client, ttl)
end

-- Puts a client into the index, and takes out the clients whose time is over.
local function enlist(index, now, ttl, id)
  redis.call('ZREMRANGEBYSCORE', index, '-inf', now)
  redis.call('ZADD', index, now + ttl, id)
  raise_ttl(index, ttl)
end
