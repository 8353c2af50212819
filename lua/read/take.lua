-- Takes the read side for a fresh wire id, unless somebody writes or, where writers go first, a writer waits. Running it
-- again is as good as once.
--
-- KEYS
--   lock       hash    "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   tombstone  string  exists once this wire id is over
--   hold       string  lives as long as this reader's lease
--   writers    zset    waiting writer -> ms of the server's clock until which it counts as alive
-- ARGV
--   owner      text    clientId:n
--   lease      ms      of the reader; TTL of the lock, at least
--   yields     int     1 if waiting writers go first
-- REPLY
--   1               granted
--   {0, ms, owner}  refused; when the side may be free, -1 if never; who writes, empty if a writer waits
--   {2}             this wire id is over
-- INCLUDE shared/clock
-- INCLUDE shared/create
-- INCLUDE shared/foreign
-- INCLUDE shared/raise_ttl

if redis.call('EXISTS', tombstone) == 1 then
  return {2}
end
local mode = redis.call('HGET', lock, 'mode')
local again = redis.call('HEXISTS', lock, owner) == 1
if not again and (mode or redis.call('EXISTS', lock) == 1) then
  refuse_foreign(lock)
  if mode ~= 'read' then
    for _, field in ipairs(redis.call('HKEYS', lock)) do
      local writer = string.match(field, '^(.*):write$')
      if writer then
        return {0, redis.call('PTTL', lock), writer}
      end
    end
    return {0, redis.call('PTTL', lock), ''}
  end
end
if yields == '1' and not again then
  local last = redis.call('ZREVRANGE', writers, 0, 0, 'WITHSCORES')[2]
  local wait = last and last - server_time() or 0
  if wait > 0 then
    return {0, wait, ''}
  end
end
-- A key without a field is left over from a lock that was deleted.
if not again or redis.call('PTTL', hold) < tonumber(lease) then
  redis.call('SET', hold, '1', 'PX', lease)
end
if not mode then
  return create(lock, lease, 'mode', 'read', owner, '1') or 1
end
if not again then
  redis.call('HSET', lock, owner, '1')
end
raise_ttl(lock, lease)
return 1
