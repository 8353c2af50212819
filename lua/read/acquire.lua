-- Takes the read side for fresh wire ids, each unless another owner writes or, where writers go first, a writer waits.
-- Running it again is as good as once.
--
-- KEYS
--   lock       hash    "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   writers    zset    waiting writer -> ms of the server's clock until which it counts as alive
--   theirs...  string  for each wire id two: a tombstone that exists once it is over, and what lives as long as the
--                      lease of its hold
-- ARGV
--   yield      int     1 if waiting writers go first
--   owners...  text    clientId:n
--   leases...  ms      of their holds; TTL of the lock, at least
-- REPLY
--   {granted, ms, ...}  for each wire id: 1, 0 granted; 0, ms refused, and when the side may be free, -1 if never;
--                       2, 0 it is over
-- INCLUDE shared/clock
-- INCLUDE shared/create
-- INCLUDE shared/foreign
-- INCLUDE shared/raise_ttl

local lock, writers, theirs = KEYS[1], KEYS[2], KEYS
local yield = ARGV[1]

-- True once the data of the key was found to be a lock.
local known = false

-- Returns granted and ms; or the error.
local function admit(tombstone, hold, owner, lease)
  local mode = redis.call('HGET', lock, 'mode')
  if redis.call('EXISTS', tombstone) == 1 then
    return 2, 0
  end
  local again = redis.call('HEXISTS', lock, owner) == 1
  if not again and (mode or redis.call('EXISTS', lock) == 1) then
    if not known then
      refuse_foreign(lock)
      known = true
    end
    if mode ~= 'read' then
      return 0, redis.call('PTTL', lock)
    end
  end
  if yield == '1' and not again then
    local last = redis.call('ZREVRANGE', writers, 0, 0, 'WITHSCORES')[2]
    local wait = last and last - server_time() or 0
    if wait > 0 then
      return 0, wait
    end
  end
  if redis.call('PTTL', hold) < tonumber(lease) then
    redis.call('SET', hold, '1', 'PX', lease)
  end
  if not mode then
    return create(lock, lease, 'mode', 'read', owner, '1') or 1, 0
  end
  if not again then
    redis.call('HSET', lock, owner, '1')
  end
  raise_ttl(lock, lease)
  return 1, 0
end

local replies = {}
for i = 1, (#ARGV - 1) / 2 do
  local granted, ms = admit(theirs[2 * i + 1], theirs[2 * i + 2], ARGV[2 * i], ARGV[2 * i + 1])
  if type(granted) == 'table' then
    return granted
  end
  replies[2 * i - 1], replies[2 * i] = granted, ms
end
return replies
