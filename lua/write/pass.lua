-- Gives the write side back and grants it in the same step to one who waits for it in the giver's process, its heir (lock
-- cohorting: Dice, Marathe and Shavit 2012). No other process comes between, so now and then the others are asked: then
-- the release is announced, and the heir gets nothing if anybody outside its process hears of it; but it is marked as a
-- waiting writer before, so that readers let it go first.
--
-- KEYS
--   lock           hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel        channel  where releases are announced
--   tombstone      string   exists once the giver's wire id is over
--   heirTombstone  string   exists once the heir's is
--   writers        zset     waiting writer -> ms of the server's clock until which it counts as alive
-- ARGV
--   owner          text     the giver, clientId:n
--   field          text     clientId:n:write
--   heir           text     clientId:n
--   heirField      text     clientId:n:write
--   lease          ms       of the heir
--   ask            int      1 if others go before the heir
--   own            int      how many subscribers of the channel are of this process
--   patience       int      ms for which a waiter that is not heard of counts as alive; 0 if the heir is not to be marked
--   tombstoneTtl   ms       how long a command may be sent again
--   publish        text     PUBLISH or SPUBLISH
-- REPLY
--   {1, 1, 0}       given back, now or by an earlier run, and the heir has it
--   {1, 0, others}  given back; the heir has nothing, and so many others heard of it
--   {0, 0, 0}       the lock was gone
--   {-1, 0, 0}      another held it
-- FLAGS allow-oom
-- INCLUDE shared/absence
-- INCLUDE shared/bury
-- INCLUDE shared/clock
-- INCLUDE shared/create
-- INCLUDE shared/end_write
-- INCLUDE shared/others
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/reads

local lock, channel, tombstone, heirTombstone, writers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, field, heir, heirField, lease = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ask, own, patience, tombstoneTtl, publish = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

if redis.call('HEXISTS', lock, field) == 1 then
  bury(tombstone, tombstoneTtl)
  end_write(lock, field, reads_left(lock, owner, redis.call('HGET', lock, owner)))
  if ask == '1' and patience ~= '0' and redis.call('EXISTS', heirTombstone) == 0 then
    redis.call('ZADD', writers, server_time() + patience, heir)
    raise_ttl(writers, patience)
  end
  local others = others_first(lock, heirTombstone, channel, '1', ask, own, publish)
  if others then
    return {1, 0, others}
  end
  redis.call('ZREM', writers, heir)
  return create(lock, lease, 'mode', 'write', heirField, 1) or {1, 1, 0}
end
if redis.call('EXISTS', tombstone) == 0 then
  return {absence(lock), 0, 0}
end
if redis.call('HEXISTS', lock, heirField) == 0 then
  return {1, 0, 0}
end
raise_ttl(lock, lease)
return {1, 1, 0}
