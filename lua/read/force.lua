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
-- FLAGS allow-oom
-- INCLUDE shared/forced
-- INCLUDE shared/foreign
-- INCLUDE shared/hear
-- INCLUDE shared/readers

local lock, channel, marker = KEYS[1], KEYS[2], KEYS[3]
local tombstones, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3]

refuse_foreign(lock)
local before = forced_before(marker)
if before then
  return before
end
-- The counts are not trusted: one run deletes so many holds at most, in addition to the first of each reader. What is left
-- of them lapses.
local MOST_DELETED = 10000
local owners, vain, deleted = {}, 0, 0
if redis.call('HGET', lock, 'mode') == 'read' then
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local left
    left, vain = reader_left(lock, fields[i], fields[i + 1], vain)
    if left > 0 then
      owners[#owners + 1] = fields[i]
    end
    if fields[i] ~= 'mode' then
      local last = math.min(tonumber(fields[i + 1]) or 0, 1 + MOST_DELETED - deleted)
      for number = 1, last do
        redis.call('DEL', hold_key(lock, fields[i], number))
      end
      deleted = deleted + math.max(0, last - 1)
    end
  end
  redis.call('DEL', lock)
end
note_forced(marker, owners, tombstones, tombstoneTtl)
if #owners > 0 then
  hear(publish, channel, '0')
end
return owners
