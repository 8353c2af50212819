-- Gives the read side back, whoever holds it. A writer that reads as well keeps its write side.
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
-- INCLUDE shared/foreign
-- INCLUDE shared/reads
-- INCLUDE shared/write_tombstone

local lock, channel, tombstone = KEYS[1], KEYS[2], KEYS[3]
local tombstoneTtl, publish = ARGV[1], ARGV[2]

refuse_foreign(lock)
local held = all_reads_left(lock) == 0 and 0 or 1
-- A call that is sent again must not take the lock from a later holder, also if the first run found no holder.
if not write_tombstone(tombstone, tombstoneTtl, held) then
  return tonumber(redis.call('GET', tombstone))
elseif held == 0 then
  return 0
end
local mode = redis.call('HGET', lock, 'mode')
local fields = redis.call('HGETALL', lock)
local vain = 0
for i = 1, #fields, 2 do
  if fields[i] ~= 'mode' and not string.find(fields[i], ':write$') then
    local _, last, sum = reads_left(lock, fields[i], fields[i + 1], vain)
    vain = sum
    set_reads(lock, fields[i], {}, last)
  end
end
if mode == 'read' then
  redis.call('DEL', lock)
  announce(publish, channel, '0')
end
return 1
