-- Ends wire ids for good, on both sides: the release of a lock, the undoing of abandoned calls, the loss of a hold. It
-- may be sent any number of times, before or behind any other command of these ids. The readers that are left keep the
-- lock for as long as the longest of them. A waiting writer that is over is not advertised any more; if it was the
-- last, the readers are told.
--
-- KEYS
--   lock           hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel        channel  where releases are announced
--   writers        zset     waiting writer -> ms of the server's clock until which it counts as alive
--   nextTombstone  string   exists once the next writer is over; without one, any key
--   tombstones...  string   of each wire id
-- ARGV
--   tombstoneTtl   ms       how long a command may be late
--   publish        text     PUBLISH or SPUBLISH
--   nextWriter     text     who waits to write in the process of the one that ends; empty if nobody does
--   aliveFor       int      ms for which a waiter that is not heard of counts as alive; 0 if it is not advertised
--   owners...      text     clientId:n, one for each tombstone
-- REPLY
--   {heard, found, ...}     how many subscribers heard of it, -1 if they could not be told. For each wire id the sides that it had,
--                           now or at an earlier run: 1 read, 2 wrote, 3 both. 0 if nobody had the lock, -1 if another had
-- INCLUDE shared/bury
-- INCLUDE shared/clock
-- INCLUDE shared/hear
-- INCLUDE shared/readers
-- INCLUDE shared/remove_field
-- INCLUDE shared/waiting_writers

local replies, read, wrote, left, withdrawn = {0}, false, false, 0, 0
for i = 5, #tombstones do
  local owner = ARGV[i]
  -- First, because it refuses other data in the place of the waiting writers.
  withdrawn = withdrawn + redis.call('ZREM', writers, owner)
  local hold = hold_key(lock, owner, 1)
  -- The reader's key is read before the lock's TTL: before Redis 7.2 time goes on within a script.
  local term = redis.call('PTTL', hold)
  local found = 0
  if remove_field(lock, owner) then
    -- A reader whose key has lapsed has lost its side, as KEEP says, even if others keep the lock.
    read, found = true, term == -2 and 0 or 1
    left = math.max(left, term)
    redis.call('DEL', hold)
  end
  if remove_field(lock, owner .. ':write') then
    wrote, found = true, found + 2
  end
  if found == 0 then
    found = -redis.call('EXISTS', lock)
  end
  replies[i - 3] = bury(tombstones[i], found, tombstoneTtl)
end

if wrote then
  redis.call('DEL', lock)
  -- Readers must not make way for a writer that has given up meanwhile.
  if redis.call('EXISTS', nextTombstone) == 0 then
    advertise_writer(writers, nextWriter, aliveFor)
  end
  replies[1] = hear(publish, channel, '1')
elseif read and redis.call('HGET', lock, 'mode') == 'read' and settle_readers(lock, left) then
  replies[1] = hear(publish, channel, '0')
elseif withdrawn > 0 and redis.call('HGET', lock, 'mode') ~= 'write' then
  -- While somebody writes, no reader waits for those in line; and a message for nothing may cost a writer of Redisson the
  -- next one.
  redis.call('ZREMRANGEBYSCORE', writers, '-inf', server_time())
  if redis.call('EXISTS', writers) == 0 then
    hear(publish, channel, '1')
  end
end
return replies
