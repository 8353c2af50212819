-- Gives the write side back, whoever holds it. A writer that reads as well keeps its read side.
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
-- INCLUDE shared/end_write
-- INCLUDE shared/reads

local lock, channel = KEYS[1], KEYS[2]
local publish = ARGV[1]

if redis.call('HGET', lock, 'mode') ~= 'write' then
  return 0
end
for _, field in ipairs(redis.call('HKEYS', lock)) do
  if string.find(field, ':write$') then
    end_write(lock, field, all_reads_left(lock))
  end
end
announce(publish, channel, '1')
return 1
