-- Undoes one acquire or nested acquire of the write side whose outcome is unknown or unwanted, and leaves a tombstone
-- that refuses it should it arrive later still. A waiting writer that gives up is not advertised any more; if it was
-- the last, the readers are told. A nested call is undone alone: the owner's other holds stay.
--
-- KEYS
--   lock          hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel       channel  where releases are announced
--   tombstone     string   of the wire id, or of the nested call
--   writers       zset     waiting writer -> ms of the server's clock until which it counts as alive
-- ARGV
--   owner         text     clientId:n
--   field         text     clientId:n:write
--   count         int      write holds without the undone one
--   left          int      ms that the owner's longest other hold, on either side, has to go; 0 if there is none
--   tombstoneTtl  ms       how long a command may be late
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   1             there was something to undo
--   0             there was not, or an earlier run has undone it
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/clock
-- INCLUDE shared/end_write
-- INCLUDE shared/reads
-- INCLUDE shared/write_tombstone

local lock, channel, tombstone, writers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, field, count, left, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if not write_tombstone(tombstone, tombstoneTtl) then
  return 0
end
local withdrawn = redis.call('ZREM', writers, owner)
redis.call('ZREMRANGEBYSCORE', writers, '-inf', server_time())
if withdrawn == 1 and redis.call('EXISTS', writers) == 0 then
  announce(publish, channel, '1')
end
local current = redis.call('HGET', lock, field)
if not current or tonumber(current) <= tonumber(count) then
  return withdrawn
end
if count ~= '0' then
  redis.call('PEXPIRE', lock, left)
  redis.call('HSET', lock, field, count)
  return 1
end
end_write(lock, field, reads_left(lock, owner, redis.call('HGET', lock, owner)))
announce(publish, channel, '1')
return 1
