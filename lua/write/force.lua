-- Ends the write side of whoever has it; the writer's own reads keep the lock. A repetition gives the same answer, and
-- leaves a later writer alone.
--
-- KEYS
--   lock          hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel       channel  where releases are announced
--   marker        string   the answer, once this call is over
-- ARGV
--   tombstones    text     what the tombstone of a wire id begins with
--   tombstoneTtl  ms       how long a command may be late
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   {field, ...}  the write sides that were ended, clientId:n:write
-- INCLUDE shared/forced
-- INCLUDE shared/foreign
-- INCLUDE shared/hear
-- INCLUDE shared/readers

refuse_foreign(lock)
local before = forced_before(marker)
if before then
  return before
end
local fields = {}
if redis.call('HGET', lock, 'mode') == 'write' then
  for _, field in ipairs(redis.call('HKEYS', lock)) do
    if string.find(field, ':write$') then
      redis.call('HDEL', lock, field)
      fields[#fields + 1] = field
    end
  end
  redis.call('HSET', lock, 'mode', 'read')
  settle_readers(lock, redis.call('PTTL', lock))
end
note_forced(marker, fields, tombstones, tombstoneTtl)
if #fields > 0 then
  hear(publish, channel, '1')
end
return fields
