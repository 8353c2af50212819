-- Gives the write side back and grants it in the same step to the successor, a waiter in the process of the giver (lock
-- cohorting: Dice, Marathe and Shavit 2012). No other process can get the lock in between, so now and then the other
-- processes are asked: the release is announced, and the successor gets nothing if a subscriber outside its process
-- hears it. Before that the successor is advertised as a waiting writer, so that readers let it go first.
--
-- KEYS
--   lock                hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel             channel  where releases are announced
--   tombstone           string   exists once the giver's wire id is over
--   successorTombstone  string   exists once the successor's is
--   writers             zset     waiting writer -> ms of the server's clock until which it counts as alive
-- ARGV
--   owner               text     the giver, clientId:n
--   field               text     clientId:n:write
--   successor           text     clientId:n
--   successorField      text     clientId:n:write
--   lease               ms       of the successor
--   ask                 int      1 if others who hear of the release go before the successor, 2 if others do whoever hears of it
--   own                 int      how many subscribers of the channel are of this process
--   aliveFor            int      ms for which an unheard waiter counts as alive; 0 if the successor is not advertised
--   tombstoneTtl        ms       how long a command may be sent again
--   publish             text     PUBLISH or SPUBLISH
-- REPLY
--   {1, 1, 0}       given back, now or by an earlier run, and the successor has it
--   {1, 0, others}  given back; the successor has nothing, and so many others heard of it
--   {0, 0, 0}       the lock was gone
--   {-1, 0, 0}      another held it
-- FLAGS allow-oom
-- INCLUDE shared/announce_lapse
-- INCLUDE shared/clock
-- INCLUDE shared/create
-- INCLUDE shared/end_write
-- INCLUDE shared/others
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/reads
-- INCLUDE shared/why_not_held
-- INCLUDE shared/write_tombstone
-- INCLUDE shared/writers

local lock, channel, tombstone, successorTombstone, writers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, field, successor, successorField, lease = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ask, own, aliveFor, tombstoneTtl, publish = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

if redis.call('HEXISTS', lock, field) == 1 then
  write_tombstone(tombstone, tombstoneTtl)
  end_write(lock, field, reads_left(lock, owner, redis.call('HGET', lock, owner)))
  if ask ~= '0' and aliveFor ~= '0' and redis.call('EXISTS', successorTombstone) == 0 then
    advertise(writers, successor, server_time(), aliveFor)
  end
  local others = others_first(lock, successorTombstone, channel, '1', ask, own, publish)
  if others then
    return {1, 0, others}
  end
  redis.call('ZREM', writers, successor)
  return create(lock, lease, 'mode', 'write', successorField, '1') or {1, 1, 0}
end
if redis.call('EXISTS', tombstone) == 0 then
  announce_lapse(lock, publish, channel, '1')
  return {why_not_held(lock), 0, 0}
end
if redis.call('HEXISTS', lock, successorField) == 0 then
  return {1, 0, 0}
end
raise_ttl(lock, lease)
return {1, 1, 0}
