-- Ends wire ids for good: the release of a lock, the undoing of calls that were given up, the loss of a hold. Waiters leave
-- the queue by this script, many in one pass: a waiter that left alone would move all waiters behind it. It may be sent
-- any number of times, before or behind any other command of these ids. If the lock is free, the next waiter is woken.
--
-- KEYS
--   lock           hash     owner -> hold count
--   queue          list     waiters in their order
--   timeouts       zset     waiter -> ms of the server's clock at which its ticket lapses
--   alive          zset     waiter of this library -> ms of the server's clock until which it counts as alive
--   channel        channel  with ":" and a waiter's name: where it is woken
--   tombstones...  string   of each wire id
-- ARGV
--   tombstoneTtl   ms       how long a command may be late
--   publish        text     PUBLISH or SPUBLISH
--   grace          ms       what Redisson grants each waiter to take its turn
--   owners...      text     clientId:n, one for each tombstone
-- REPLY
--   {0, found, ...}         for each wire id 1 if it had the lock, now or at an earlier run, 0 if nobody had, -1 if another had
-- INCLUDE shared/bury
-- INCLUDE shared/clock
-- INCLUDE shared/queue
-- INCLUDE shared/remove_field

-- How many waiters one command reads or writes.
local CHUNK = 500

-- Takes waiters out, each from its last position, and moves the waiters behind them up. Reads the queue from its end to
-- the first waiter that leaves, and writes the waiters that stay of that part anew.
local function withdraw(waiters)
  local leaving, missing = {}, #waiters
  for _, waiter in ipairs(waiters) do
    leaving[waiter] = true
  end
  -- From the end of the queue: the waiters that leave; the waiters that stay, and for each how many leave behind it.
  local left_by, staying, behind = {}, {}, {}
  local position = redis.call('LLEN', queue)
  while position > 0 and missing > 0 do
    local chunk = redis.call('LRANGE', queue, math.max(0, position - CHUNK), position - 1)
    for i = #chunk, 1, -1 do
      local waiter = chunk[i]
      position = position - 1
      if leaving[waiter] then
        leaving[waiter] = nil
        missing = missing - 1
        left_by[#left_by + 1] = waiter
        if missing == 0 then
          break
        end
      else
        staying[#staying + 1] = waiter
        behind[#staying] = #left_by
      end
    end
  end
  if #left_by == 0 then
    return
  end
  for i, waiter in ipairs(staying) do
    local turns = #left_by - behind[i]
    if turns > 0 then
      move_up(timeouts, {waiter}, turns * grace)
    end
  end
  -- LTRIM cannot empty a list.
  if position == 0 then
    redis.call('DEL', queue)
  else
    redis.call('LTRIM', queue, 0, position - 1)
  end
  local again = {}
  for i = #staying, 1, -1 do
    again[#again + 1] = staying[i]
    if #again == CHUNK or i == 1 then
      redis.call('RPUSH', queue, unpack(again))
      again = {}
    end
  end
  redis.call('ZREM', timeouts, unpack(left_by))
  redis.call('ZREM', alive, unpack(left_by))
end

-- All tombstones are written before anything else can fail.
local replies, changed, gone = {0}, false, {}
for i = 6, #tombstones do
  local owner = ARGV[i - 2]
  local found = 1
  if remove_field(lock, owner) then
    changed = true
  else
    found = -redis.call('EXISTS', lock)
    -- A wire id with a tombstone has no ticket, so the queue is not searched again.
    if redis.call('EXISTS', tombstones[i]) == 0 then
      gone[#gone + 1] = owner
    end
  end
  replies[i - 4] = bury(tombstones[i], found, tombstoneTtl)
end
-- An id that was not found may have been the head of the queue, for which all others waited. Or its lease has ended, which
-- nobody was told: a waiter of Redisson may sleep much longer.
if #gone > 0 then
  withdraw(gone)
  changed = true
end
if changed and redis.call('EXISTS', lock) == 0 then
  pass_on(queue, timeouts, alive, channel, publish, server_time(), grace)
end
return replies
