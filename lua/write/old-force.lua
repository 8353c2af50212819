-- Gives the write side back, whoever holds it. A writer that reads as well keeps its read side.
--
-- KEYS
--   lock          hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel       channel  where releases are announced
--   tombstone     string   the answer, once this call is over
-- ARGV
--   tombstoneTtl  ms       how long a command may be sent again
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   1             it was held
--   0             it was free
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/end_write
-- INCLUDE shared/foreign
-- INCLUDE shared/reads
-- INCLUDE shared/write_tombstone

local lock, channel, tombstone = KEYS[1], KEYS[2], KEYS[3]
local tombstoneTtl, publish = ARGV[1], ARGV[2]

refuse_foreign(lock)
local held = redis.call('HGET', lock, 'mode') == 'write' and 1 or 0
-- A call that is sent again must not take the lock from a later holder, also if the first run found no holder.
if not write_tombstone(tombstone, tombstoneTtl, held) then
  return tonumber(redis.call('GET', tombstone))
elseif held == 0 then
  return 0
end
for _, field in ipairs(redis.call('HKEYS', lock)) do
  if string.find(field, ':write$') then
    end_write(lock, field, all_reads_left(lock))
  end
end
announce(publish, channel, '1')
return 1
