-- What is known of a lock and of one owner in it. This is a script, so that the master answers.
--
-- KEYS
--   lock   hash  owner -> hold count
-- ARGV
--   owner  text  clientId:n; empty for nobody
-- REPLY
--   {held, count, pttl}  1 or 0, the owner's hold count, ms left (-2 free)
-- INCLUDE shared/foreign

local lock = KEYS[1]
local owner = ARGV[1]

refuse_foreign(lock)
return {redis.call('EXISTS', lock), tonumber(redis.call('HGET', lock, owner) or 0), redis.call('PTTL', lock)}
