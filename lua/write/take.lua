-- Takes the write side of a free lock for a fresh wire id. A lock whose readers have all lapsed is free, though its key
-- may be there. A call that is refused and waits is advertised as a waiting writer. Running it again is as good as
-- once.
--
-- KEYS
--   lock           hash    "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   tombstone      string  exists once this wire id is over
--   sideTombstone  string  exists once its write side is
--   writers        zset    waiting writer -> ms of the server's clock until which it counts as alive
-- ARGV
--   owner      text    clientId:n
--   field      text    clientId:n:write
--   lease      ms      TTL of the lock
--   aliveFor   int     ms for which a waiter that is not heard of counts as alive; 0 if this one is not advertised
-- REPLY
--   1                  granted
--   {0, pttl, holder}  refused; ms until the lock lapses, -1 if never; one of its holders
--   {2}                this wire id, or its write side, is over
-- INCLUDE shared/create
-- INCLUDE shared/foreign
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/readers
-- INCLUDE shared/waiting_writers

if redis.call('EXISTS', tombstone, sideTombstone) > 0 then
  return {2}
end
if redis.call('HGET', lock, 'mode') == 'read' then
  clear_lapsed(lock)
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
advertise_writer(writers, owner, aliveFor)
local holder = ''
for _, name in ipairs(redis.call('HRANDFIELD', lock, 3)) do
  if name ~= 'mode' then
    holder = string.match(name, '^(.*):write$') or name
  end
end
return {0, redis.call('PTTL', lock), holder}
