-- Takes a free lock for a fresh wire id. Running it again is as good as once: an owner that has the lock keeps its
-- count, and the TTL is only raised. A wire id that is over gets nothing.
--
-- KEYS
--   lock       hash    owner -> hold count
--   tombstone  string  exists once this wire id is over
-- ARGV
--   owner      text    clientId:n
--   lease      ms      TTL of the lock
-- REPLY
--   1                  granted
--   {0, pttl, holder}  refused; the remaining time in ms, -1 if it has no end, and who holds the lock
--   {2}                this wire id is over
-- INCLUDE shared/create
-- INCLUDE shared/foreign
-- INCLUDE shared/raise_ttl

if redis.call('EXISTS', lock, tombstone) == 0 then
  return create(lock, lease, owner, '1') or 1
end
if redis.call('EXISTS', tombstone) == 1 then
  return {2}
end
if redis.call('HEXISTS', lock, owner) == 1 then
  raise_ttl(lock, lease)
  return 1
end
refuse_foreign(lock)
return {0, redis.call('PTTL', lock), redis.call('HKEYS', lock)[1]}
