-- Undoes one acquire or nested acquire whose outcome is unknown or unwanted, and leaves a tombstone that refuses it
-- should it arrive later still. A waiter that gives up leaves the queue by it. A nested call is undone alone: the
-- owner's other holds stay as they are.
--
-- KEYS
--   lock          hash     owner -> hold count
--   queue         list     waiters in their order
--   timeouts      zset     waiter -> ms of the server's clock at which its place lapses
--   alive         zset     waiter of this library -> ms of the server's clock until which it counts as alive
--   channel       channel  with ":" and a waiter's name: where it is woken
--   tombstone     string   of the wire id, or of the nested call
-- ARGV
--   owner         text     clientId:n
--   count         int      holds without the undone one; 0 gives the lock back
--   left          int      ms that the longest other hold has to go; unused with count 0
--   tombstoneTtl  ms       how long a command may be late
--   publish       text     PUBLISH or SPUBLISH
--   grace         ms       what Redisson grants each waiter to take its turn
-- REPLY
--   1             there was something to undo
--   0             there was not, or an earlier run has undone it
-- FLAGS allow-oom
-- INCLUDE shared/bury
-- INCLUDE shared/clock
-- INCLUDE shared/queue

local lock, queue, timeouts, alive, channel, tombstone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local owner, count, left, tombstoneTtl, publish, grace = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if not bury(tombstone, tombstoneTtl) then
  return 0
end
local undone = 0
local place = redis.call('LPOS', queue, owner, 'RANK', -1)
if place then
  move_up(timeouts, redis.call('LRANGE', queue, place + 1, -1), grace)
  redis.call('LREM', queue, -1, owner)
  redis.call('ZREM', timeouts, owner)
  redis.call('ZREM', alive, owner)
  undone = 1
end
local current = redis.call('HGET', lock, owner)
if current and tonumber(current) > tonumber(count) then
  if count ~= '0' and left ~= '0' then
    redis.call('PEXPIRE', lock, left)
    redis.call('HSET', lock, owner, count)
  else
    redis.call('HDEL', lock, owner)
  end
  undone = 1
end
-- Also who did not hold the lock may have been the one that everybody waited for.
if undone == 1 and redis.call('EXISTS', lock) == 0 then
  prune(queue, timeouts, alive, server_time(), grace)
  wake_next(queue, channel, publish)
end
return undone
