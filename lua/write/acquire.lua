-- Takes the write side of a free lock for a fresh wire id. A lock whose readers have all lapsed is free, though its key
-- may be there. A call that is refused and waits is advertised as a waiting writer. Running it again is as good as
-- once.
--
-- KEYS
--   lock       hash    "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   tombstone  string  exists once this wire id is over
--   writers    zset    waiting writer -> ms of the server's clock until which it counts as alive
-- ARGV
--   owner      text    clientId:n
--   field      text    clientId:n:write
--   lease      ms      TTL of the lock
--   aliveFor   int     ms for which a waiter that is not heard of counts as alive; 0 if this one is not advertised
-- REPLY
--   1          granted
--   {0, pttl}  held by others; ms until the lock lapses, -1 if never
--   {2, 0}     this wire id is over
-- INCLUDE shared/clock
-- INCLUDE shared/create
-- INCLUDE shared/foreign
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/reads
-- INCLUDE shared/writers

local lock, tombstone, writers = KEYS[1], KEYS[2], KEYS[3]
local owner, field, lease, aliveFor = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('HGET', lock, 'mode') == 'read' then
  clear_lapsed(lock)
end
if redis.call('EXISTS', tombstone) == 1 then
  return {2, 0}
end
if redis.call('EXISTS', lock) == 0 then
  redis.call('ZREM', writers, owner)
  return create(lock, lease, 'mode', 'write', field, '1') or 1
end
if redis.call('HEXISTS', lock, field) == 1 then
  raise_ttl(lock, lease)
  return 1
end
refuse_foreign(lock)

-- An owner that reads can never wait to write. If it reads, this is a late copy of the command that granted it the
-- write side, before it went on as a reader.
if aliveFor ~= '0' and redis.call('HEXISTS', lock, owner) == 0 then
  local now = server_time()
  redis.call('ZREMRANGEBYSCORE', writers, '-inf', now)
  advertise(writers, owner, now, aliveFor)
end
return {0, redis.call('PTTL', lock)}
