-- What is known of the write side and of one owner in it. This is a script, so that the master answers.
--
-- KEYS
--   lock   hash  "mode" -> read or write; owner -> read holds; owner:write -> write holds
-- ARGV
--   field  text  clientId:n:write; or of nobody
-- REPLY
--   {held, count, pttl}  1 or 0, the owner's write holds, ms left (-2 if nobody writes)
-- INCLUDE shared/foreign

local lock = KEYS[1]
local field = ARGV[1]

refuse_foreign(lock)
if redis.call('HGET', lock, 'mode') ~= 'write' then
  return {0, 0, -2}
end
return {1, tonumber(redis.call('HGET', lock, field) or 0), redis.call('PTTL', lock)}
