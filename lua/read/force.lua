-- Ends the wire ids of all readers. A writer's own reads are left alone. A repetition gives the same answer, and leaves
-- later readers alone.
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
--   {owner, ...}  the wire ids that read
-- INCLUDE shared/forced
-- INCLUDE shared/foreign
-- INCLUDE shared/hear
-- INCLUDE shared/readers

refuse_foreign(lock)
local before = forced_before(marker)
if before then
  return before
end
local owners, vain = {}, 0
if redis.call('HGET', lock, 'mode') == 'read' then
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local left
    left, vain = reader_left(lock, fields[i], fields[i + 1], vain)
    if left > 0 then
      owners[#owners + 1] = fields[i]
    end
    -- Further keys of a reader of Redisson lapse by themselves.
    redis.call('DEL', hold_key(lock, fields[i], 1))
  end
  redis.call('DEL', lock)
end
note_forced(marker, owners, tombstones, tombstoneTtl)
if #owners > 0 then
  hear(publish, channel, '0')
end
return owners
