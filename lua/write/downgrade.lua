-- Ends the write side of an owner that goes on as a reader. It makes what a reader has, whether or not its own read came
-- before: the write side proves the right to. The reader keeps the writer's deadline.
--
-- KEYS
--   lock           hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel        channel  where releases are announced
--   sideTombstone  string   of the write side
--   hold           string   lives as long as the reader's lease
-- ARGV
--   owner          text     clientId:n
--   field          text     clientId:n:write
--   reads          int      its read holds
--   left           ms       until the owner's deadline
--   tombstoneTtl   ms       how long a command may be late
--   publish        text     PUBLISH or SPUBLISH
-- REPLY
--   {heard, found}          how many subscribers heard of it, -1 if they could not be told. 2 if it wrote, now or at an earlier
--                           run, 0 if nobody else has the lock, -1 if another has
-- INCLUDE shared/bury
-- INCLUDE shared/hear
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/remove_field

if not remove_field(lock, field) then
  local reads_still = redis.pcall('HEXISTS', lock, owner) == 1
  return {0, bury(sideTombstone, reads_still and 0 or -redis.call('EXISTS', lock), tombstoneTtl)}
end
redis.call('HSET', lock, 'mode', 'read', owner, reads)
raise_ttl(lock, left)
redis.call('SET', hold, '1', 'PX', math.max(redis.call('PTTL', lock), tonumber(left)))
bury(sideTombstone, 2, tombstoneTtl)
return {hear(publish, channel, '1'), 2}
