-- Gives a lock back and grants it in the same step to one who waits for it in the giver's process, its heir (lock
-- cohorting: Dice, Marathe and Shavit 2012). No other process comes between, so now and then the others are asked: then
-- the release is announced, and the heir gets nothing if anybody outside its process hears of it.
--
-- KEYS
--   lock           hash     owner -> hold count
--   channel        channel  where releases are announced
--   tombstone      string   exists once the giver's wire id is over
--   heirTombstone  string   exists once the heir's is
-- ARGV
--   owner          text     the giver, clientId:n
--   heir           text     clientId:n
--   lease          ms       of the heir
--   ask            int      1 if others go before the heir
--   own            int      how many subscribers of the channel are of this process
--   tombstoneTtl   ms       how long a command may be sent again
--   publish        text     PUBLISH or SPUBLISH
-- REPLY
--   {1, 1, 0}       given back, now or by an earlier run, and the heir has it
--   {1, 0, others}  given back; the heir has nothing, and so many others heard of it
--   {0, 0, 0}       the lock was gone
--   {-1, 0, 0}      another held it
-- FLAGS allow-oom
-- INCLUDE shared/absence
-- INCLUDE shared/create
-- INCLUDE shared/others
-- INCLUDE shared/raise_ttl

local lock, channel, tombstone, heirTombstone = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, heir, lease, ask, own, tombstoneTtl, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

if redis.call('HDEL', lock, owner) == 1 then
  redis.call('SET', tombstone, '1', 'PX', tombstoneTtl)
  local others = others_first(lock, heirTombstone, channel, '0', ask, own, publish)
  if others then
    return {1, 0, others}
  end
  return create(lock, lease, heir, 1) or {1, 1, 0}
end
if redis.call('EXISTS', tombstone) == 0 then
  return {absence(lock), 0, 0}
end
if redis.call('HEXISTS', lock, heir) == 0 then
  return {1, 0, 0}
end
raise_ttl(lock, lease)
return {1, 1, 0}
