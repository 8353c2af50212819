-- Takes a free lock for a fresh wire id and the next fencing token. Running it again is as good as once. An owner that
-- has the lock keeps its count and its token, and the TTL is only raised.
--
-- KEYS
--   lock       hash    owner -> hold count
--   tombstone  string  exists once this wire id is over
--   counter    string  the last token; without TTL
-- ARGV
--   owner      text    clientId:n
--   lease      ms      TTL of the lock
-- REPLY
--   {1, token}         granted; the token as text, since a client may round large numbers
--   {0, pttl, holder}  refused; the remaining time in ms, -1 if it has no end, and who holds the lock
--   {2}                this wire id is over
-- INCLUDE shared/create
-- INCLUDE shared/foreign
-- INCLUDE shared/next_token
-- INCLUDE shared/raise_ttl

if redis.call('EXISTS', lock, tombstone) == 0 then
  next_token(counter)
  return create(lock, lease, owner, '1') or {1, redis.call('GET', counter)}
end
if redis.call('EXISTS', tombstone) == 1 then
  return {2}
end
if redis.call('HEXISTS', lock, owner) == 1 then
  raise_ttl(lock, lease)
  -- The counter has not moved since the grant: nobody else can have had the lock.
  if redis.call('EXISTS', counter) == 0 then
    next_token(counter)
  end
  return {1, redis.call('GET', counter)}
end
refuse_foreign(lock)
return {0, redis.call('PTTL', lock), redis.call('HKEYS', lock)[1]}
