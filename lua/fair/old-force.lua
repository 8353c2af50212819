-- Gives a lock back, whoever holds it, and wakes the next waiter. The queue stays.
--
-- KEYS
--   lock          hash     owner -> hold count
--   queue         list     waiters in their order
--   timeouts      zset     waiter -> ms of the server's clock at which its ticket lapses
--   alive         zset     waiter of this library -> ms of the server's clock until which it counts as alive
--   channel       channel  with ":" and a waiter's name: where it is woken
--   tombstone     string   the answer, once this call is over
-- ARGV
--   tombstoneTtl  ms       how long a command may be sent again
--   publish       text     PUBLISH or SPUBLISH
--   grace         ms       what Redisson grants each waiter to take its turn
-- REPLY
--   1             it was held
--   0             it was free
-- FLAGS allow-oom
-- INCLUDE shared/clock
-- INCLUDE shared/foreign
-- INCLUDE shared/queue
-- INCLUDE shared/write_tombstone

local lock, queue, timeouts, alive, channel, tombstone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local tombstoneTtl, publish, grace = ARGV[1], ARGV[2], ARGV[3]

refuse_foreign(lock)
-- Refuses other data in the place of the queue, before anything is written.
redis.call('LINDEX', queue, 0)
local held = redis.call('EXISTS', lock)
-- A call that is sent again must not take the lock from a later holder, also if the first run found no holder.
if not write_tombstone(tombstone, tombstoneTtl, held) then
  return tonumber(redis.call('GET', tombstone))
elseif held == 1 then
  redis.call('DEL', lock)
  pass_on(queue, timeouts, alive, channel, publish, server_time(), grace)
end
return held
