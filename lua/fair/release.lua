-- Gives back one hold. If holds are left, the count and the TTL are set to theirs. Otherwise the lock is deleted, the
-- next waiter is woken, and a tombstone is left: a release that is sent again finds it and answers as the first one
-- did.
--
-- KEYS
--   lock          hash     owner -> hold count
--   queue         list     waiters in their order
--   timeouts      zset     waiter -> ms of the server's clock at which its ticket lapses
--   alive         zset     waiter of this library -> ms of the server's clock until which it counts as alive
--   channel       channel  with ":" and a waiter's name: where it is woken
--   tombstone     string   exists once this wire id, or this call that leaves holds, is over
-- ARGV
--   owner         text     clientId:n
--   count         int      holds left; 0 gives the lock back
--   left          int      ms that the longest hold left has to go; unused with count 0
--   tombstoneTtl  ms       how long a command may be sent again
--   publish       text     PUBLISH or SPUBLISH
--   grace         ms       what Redisson grants each waiter to take its turn
-- REPLY
--   1             done, now or by an earlier run
--   0             the lock is gone
--   -1            another holds it
-- FLAGS allow-oom
-- INCLUDE shared/clock
-- INCLUDE shared/queue
-- INCLUDE shared/update_hold
-- INCLUDE shared/why_not_held

local lock, queue, timeouts, alive, channel, tombstone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local owner, count, left, tombstoneTtl, publish, grace = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if count ~= '0' and left ~= '0' then
  return update_hold(lock, tombstone, owner, count, left) and 1 or why_not_held(lock)
end
local held = redis.call('HDEL', lock, owner) == 1
if held then
  redis.call('SET', tombstone, '1', 'PX', tombstoneTtl)
end
if redis.call('EXISTS', lock) == 0 then
  pass_on(queue, timeouts, alive, channel, publish, server_time(), grace)
end
if held or redis.call('EXISTS', tombstone) == 1 then
  return 1
end
return why_not_held(lock)
