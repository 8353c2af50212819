-- Gives the read side back, whoever holds it. A writer that reads as well keeps its write side.
--
-- KEYS
--   lock     hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel  channel  where releases are announced
-- ARGV
--   publish  text     PUBLISH or SPUBLISH
-- REPLY
--   1        it was held
--   0        it was free
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/reads

local lock, channel = KEYS[1], KEYS[2]
local publish = ARGV[1]

local mode = redis.call('HGET', lock, 'mode')
local held = all_reads_left(lock) > 0 and 1 or 0
local fields = redis.call('HGETALL', lock)
for i = 1, #fields, 2 do
  if fields[i] ~= 'mode' and not string.find(fields[i], ':write$') then
    set_reads(lock, fields[i], {})
  end
end
if mode == 'read' then
  redis.call('DEL', lock)
  announce(publish, channel, '0')
end
return held
