-- Gives a lock back and grants it in the same step to the successor, a waiter in the process of the giver (lock
-- cohorting: Dice, Marathe and Shavit 2012). No other process can get the lock in between, so now and then the other
-- processes are asked: the release is announced, and the successor gets nothing if a subscriber outside its process
-- hears it.
--
-- KEYS
--   lock                hash     owner -> hold count
--   channel             channel  where releases are announced
--   tombstone           string   exists once the giver's wire id is over
--   successorTombstone  string   exists once the successor's is
--   counter             string   the last token; without TTL
-- ARGV
--   owner               text     the giver, clientId:n
--   successor           text     clientId:n
--   lease               ms       of the successor
--   ask                 int      1 if others who hear of the release go before the successor, 2 if others do whoever hears of it
--   own                 int      how many subscribers of the channel are of this process
--   tombstoneTtl        ms       how long a command may be sent again
--   publish             text     PUBLISH or SPUBLISH
-- REPLY
--   {1, 1, token}   given back, now or by an earlier run, and the successor has it by this token
--   {1, 0, others}  given back; the successor has nothing, and so many others heard of it
--   {0, 0, 0}       the lock was gone
--   {-1, 0, 0}      another held it
-- FLAGS allow-oom
-- INCLUDE shared/announce
-- INCLUDE shared/announce_lapse
-- INCLUDE shared/create
-- INCLUDE shared/next_token
-- INCLUDE shared/others
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/why_not_held

local lock, channel, tombstone, successorTombstone, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, successor, lease, ask = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local own, tombstoneTtl, publish = ARGV[5], ARGV[6], ARGV[7]

if redis.call('HDEL', lock, owner) == 1 then
  redis.call('SET', tombstone, '1', 'PX', tombstoneTtl)
  local others = others_first(lock, successorTombstone, channel, '0', ask, own, publish)
  if others then
    return {1, 0, others}
  end
  -- The lock is given back by now, so the giver must not fail: the successor gets the counter's error, by a try of its
  -- own.
  local drawn = pcall(function() next_token(counter) end)
  if not drawn then
    announce(publish, channel, '0')
    return {1, 0, 0}
  end
  return create(lock, lease, successor, '1') or {1, 1, redis.call('GET', counter)}
end
if redis.call('EXISTS', tombstone) == 0 then
  announce_lapse(lock, publish, channel, '0')
  return {why_not_held(lock), 0, 0}
end
if redis.call('HEXISTS', lock, successor) == 0 then
  return {1, 0, 0}
end
raise_ttl(lock, lease)
return {1, 1, redis.call('GET', counter)}
