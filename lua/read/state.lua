-- What is known of the read side and of one owner in it. This is a script, so that the master answers.
--
-- KEYS
--   locks...  hash  "mode" -> read or write; owner -> read holds; owner:write -> write holds. Behind the one lock a key
--                   that never exists: a cluster then refuses while the slot is moving, for read holds may be elsewhere
-- ARGV
--   owner     text  clientId:n; empty for nobody
-- REPLY
--   {held, count, pttl}  1 or 0, the owner's read holds unless they have lapsed, ms left (-2 if nobody reads)
-- INCLUDE shared/foreign
-- INCLUDE shared/readers

local locks = KEYS
local owner = ARGV[1]

local lock = locks[1]
refuse_foreign(lock)
if longest_reader(lock) == 0 then
  return {0, 0, -2}
end
local count = tonumber(redis.call('HGET', lock, owner) or 0)
return {1, reader_left(lock, owner, count, 0) > 0 and count or 0, redis.call('PTTL', lock)}
