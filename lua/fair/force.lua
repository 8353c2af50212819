-- Ends the wire id of whoever holds the lock, and wakes the next waiter. The queue stays. A repetition gives the same
-- answer, and leaves a later holder alone.
--
-- KEYS
--   lock          hash     owner -> hold count
--   queue         list     waiters in their order
--   timeouts      zset     waiter -> ms of the server's clock at which its ticket lapses
--   alive         zset     waiter of this library -> ms of the server's clock until which it counts as alive
--   channel       channel  with ":" and a waiter's name: where it is woken
--   marker        string   the answer, once this call is over
-- ARGV
--   tombstones    text     what the tombstone of a wire id begins with
--   tombstoneTtl  ms       how long a command may be late
--   publish       text     PUBLISH or SPUBLISH
--   grace         ms       what Redisson grants each waiter to take its turn
-- REPLY
--   {owner, ...}  the wire ids that had the lock
-- INCLUDE shared/clock
-- INCLUDE shared/forced
-- INCLUDE shared/foreign
-- INCLUDE shared/queue

refuse_foreign(lock)
-- Refuses other data in the place of the queue, before anything is written.
redis.call('LINDEX', queue, 0)
local before = forced_before(marker)
if before then
  return before
end
local owners = redis.call('HKEYS', lock)
redis.call('DEL', lock)
note_forced(marker, owners, tombstones, tombstoneTtl)
if #owners > 0 then
  pass_on(queue, timeouts, alive, channel, publish, server_time(), grace)
end
return owners
